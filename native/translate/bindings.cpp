#include "translate/bindings.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "translate/encoder.h"
#include "translate/model.h"
#include "translate/search.h"

namespace nb = nanobind;

namespace relakit::translate {

namespace {

using Address = std::uintptr_t;  // Tensor.data_ptr(); relakit.decode.native_engine keeps it alive
using Size = std::int64_t;

template <class T>
T* at(Address address) {
  return reinterpret_cast<T*>(address);
}

std::vector<float> copied(Address address, Size size) {
  const auto* data = at<const float>(address);
  return data == nullptr ? std::vector<float>() : std::vector<float>(data, data + size);
}

void make_linear(PackedLinear* self, const std::string& isa, Address weight, Address bias,
                 Size outputs, Size inputs, bool in_bytes, double filling) {
  new (self) PackedLinear(find_kernels(isa).layout, at<const float>(weight), at<const float>(bias),
                          outputs, inputs, in_bytes, static_cast<float>(filling));
}

// y = linear(x), for benchmarks: x is [rows, inputs], y is [rows, outputs padded to whole panels].
void multiply(const PackedLinear& self, const std::string& isa, int threads, Address x, Size rows,
              Address y) {
  const Machine machine = find_machine(isa, threads);
  nb::gil_scoped_release unlocked;
  Model model;
  model.dim = self.inputs();
  Sublayers(model).multiply(machine, self, at<const float>(x), rows, at<float>(y));
}

void make_layer_norm(LayerNorm* self, Address gain, Address bias, Size dim, double eps) {
  new (self) LayerNorm{copied(gain, dim), copied(bias, dim), static_cast<float>(eps)};
}

void make_attention(AttentionLayer* self, Linear input, Linear memory, Linear output,
                    bool is_softmax, Address thresholds, Size heads, double power,
                    double length_exponent, Address gain, Address gate, Size dim, double eps,
                    const LayerNorm& residual_norm) {
  new (self) AttentionLayer{std::move(input),
                            std::move(memory),
                            std::move(output),
                            {copied(gain, dim), copied(gate, dim), static_cast<float>(eps)},
                            residual_norm,
                            is_softmax,
                            copied(thresholds, heads),
                            static_cast<float>(power),
                            static_cast<float>(length_exponent)};
}

void make_model(Model* self, Size dim, Size heads, bool norm_first, Address source_embeddings,
                Address target_embeddings, Linear output) {
  new (self) Model();
  self->dim = dim;
  self->heads = heads;
  self->norm_first = norm_first;
  self->source_embeddings = at<const float>(source_embeddings);
  self->target_embeddings = at<const float>(target_embeddings);
  self->output = std::move(output);
}

void make_search(Search* self, const std::string& isa, int threads,
                 std::shared_ptr<Model> model, const std::vector<Size>& tokens,
                 const std::vector<Size>& lengths, Address positions, Size beams) {
  const Machine machine = find_machine(isa, threads);
  const Size total = std::accumulate(lengths.begin(), lengths.end(), Size{0});
  if (total != static_cast<Size>(tokens.size())) {
    throw std::invalid_argument("the sentences have " + std::to_string(total) + " tokens, but " +
                                std::to_string(tokens.size()) + " are given");
  }
  nb::gil_scoped_release unlocked;
  Memory memory = encode(*model, machine, tokens.data(), lengths.data(),
                         static_cast<Size>(lengths.size()), at<const float>(positions));
  new (self) Search(std::move(model), std::move(memory), beams);
}

void step(Search& search, const std::string& isa, int threads, Address tokens,
          Address position, Address states) {
  const Machine machine = find_machine(isa, threads);
  nb::gil_scoped_release unlocked;
  search.step(machine, at<const Size>(tokens), at<const float>(position));
  if (states != 0) search.copy_states(at<float>(states));
}

bool choose(Search& search, const std::string& isa, int threads, Address scores, Size count,
            std::vector<Size> forbidden, Address must_end, Size end, Address best_scores,
            Address best_beams, Address best_tokens) {
  const Machine machine = find_machine(isa, threads);
  const Choice choice{count, std::move(forbidden), at<const bool>(must_end), end};
  nb::gil_scoped_release unlocked;
  return search.choose(
      machine, choice, at<const float>(scores),
      {at<float>(best_scores), at<Size>(best_beams), at<Size>(best_tokens)});
}

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
void bind(nb::module_& m) {
  nb::class_<PackedLinear>(m, "PackedLinear")
      .def("__init__", &make_linear)
      .def("multiply", &multiply);
  nb::class_<LayerNorm>(m, "PackedLayerNorm").def("__init__", &make_layer_norm);
  nb::class_<AttentionLayer>(m, "PackedAttention")
      .def("__init__", &make_attention, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
           nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg());
  nb::class_<FeedForward>(m, "PackedFeedForward")
      .def("__init__", [](FeedForward* self, Linear inner, Linear outer, const LayerNorm& norm) {
        new (self) FeedForward{std::move(inner), std::move(outer), norm};
      });
  nb::class_<Model>(m, "PackedModel")
      .def("__init__", &make_model)
      .def("add_encoder_layer",
           [](Model& self, const AttentionLayer& attention, const FeedForward& feed_forward) {
             self.encoder.push_back({attention, feed_forward});
           })
      .def("add_decoder_layer",
           [](Model& self, const AttentionLayer& target, const AttentionLayer& source,
              const FeedForward& feed_forward) {
             self.decoder.push_back({target, source, feed_forward});
           })
      .def("set_last_norms", [](Model& self, const LayerNorm& encoder, const LayerNorm& decoder) {
        self.encoder_norm = encoder;
        self.decoder_norm = decoder;
      });
  nb::class_<Search>(m, "Search")
      .def("__init__", &make_search)
      .def("allow",
           [](Search& self, const std::string& isa, int threads, Address tokens,
              const std::vector<Size>& lengths) {
             std::vector<std::vector<Size>> lists;
             const Size* next = at<const Size>(tokens);
             for (const Size length : lengths) {
               lists.emplace_back(next, next + length);
               next += length;
             }
             const Machine machine = find_machine(isa, threads);
             nb::gil_scoped_release unlocked;
             self.allow(machine, lists);
           })
      .def("step", &step)
      .def("choose", &choose)
      .def("reorder", [](Search& self, Address parents) { self.reorder(at<const Size>(parents)); })
      .def("keep", &Search::keep);
}

}  // namespace relakit::translate
