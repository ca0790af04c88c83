// A forward call, from Python's arguments to the result.

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "attention/call_memory.h"
#include "attention/entry.h"
#include "attention/weights_writer.h"
#include "cpu/dispatch.h"
#include "norm/read_norm.h"
#include "norm/run.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

using Content = Torch::Content;

enum class Form { none, dense, sparse };

std::optional<Form> read_form(nb::handle weights) {
  if (weights.is_none() || weights.ptr() == Py_False) return Form::none;
  if (weights.ptr() == Py_True) return Form::dense;
  if (!PyUnicode_Check(weights.ptr())) return std::nullopt;
  const auto is = [&](const char* text) {
    return PyUnicode_CompareWithASCIIString(weights.ptr(), text) == 0;
  };
  if (is("dense")) return Form::dense;
  if (is("csr")) return Form::sparse;
  return std::nullopt;
}

bool is_true(nb::handle object) {
  const int answer = PyObject_IsTrue(object.ptr());
  if (answer < 0) nb::raise_python_error();
  return answer != 0;
}

nb::object none_if_null(const nb::object& object) { return object.is_valid() ? object : nb::none(); }

class ForwardCall {
 public:
  ForwardCall(const Entry& entry, const CallArguments& arguments, const NormArguments& norm,
              const Wishes& wishes)
      : entry_(entry),
        torch_(entry.torch),
        arguments_(arguments),
        norm_arguments_(norm),
        wishes_(wishes),
        is_operator_(arguments.is_trusted) {}

  nb::object run() {
    if (!read() || !allocate_output() || !allocate_for_backward() || !allocate_details()) {
      return nb::none();
    }
    compute();
    if (form_ == Form::sparse && !take_sparse_weights()) return nb::none();
    if (is_recorded_) record();
    if (is_operator_) return nb::make_tuple(output_, none_if_null(bits_));
    if (!weights_.is_valid() && !counts_.is_valid()) return output_;
    return nb::make_tuple(output_, none_if_null(weights_), none_if_null(counts_),
                          none_if_null(sums_));
  }

 private:
  const Problem& problem() const { return call_.problem; }
  nb::handle like() const { return arguments_.tensors[0]; }

  // Whether the call, or else the environment, names the kernels as the backend, or names none.
  bool is_wanted() const {
    const nb::handle backend = wishes_.backend;
    if (backend.is_none()) {
      const char* named = environment("RELAKIT_BACKEND");
      return named == nullptr || std::strcmp(named, "native") == 0;
    }
    return PyUnicode_Check(backend.ptr()) &&
           PyUnicode_CompareWithASCIIString(backend.ptr(), "native") == 0;
  }

  bool needs_gradients() const {
    if (!torch_.is_grad_enabled()) return false;
    for (int i = 0; i < arguments_.count; i++) {
      if (Torch::requires_grad(arguments_.tensors[i])) return true;
    }
    for (const nb::handle object :
         {arguments_.threshold, norm_arguments_.gain, norm_arguments_.gate}) {
      const bool is_tensor = !object.is_none() && !PyFloat_Check(object.ptr()) &&
                             !PyLong_Check(object.ptr());
      if (is_tensor && Torch::requires_grad(object)) return true;
    }
    return false;
  }

  bool read() {
    if (!is_operator_ &&
        (!is_wanted() || torch_.is_autocast_enabled() || !torch_.is_plain())) {
      return false;
    }
    if (!read_call(torch_, arguments_, call_)) return false;
    const std::int64_t features = problem().heads * problem().value_dim;
    if (norm_arguments_.is_given() &&
        !norm::read_parameters(torch_, norm_arguments_.gain, norm_arguments_.gate, features, norm_)) {
      return false;
    }
    is_recorded_ = !is_operator_ && needs_gradients();
    const auto form = read_form(wishes_.weights);
    if (!form || (form == Form::sparse && is_recorded_)) return false;
    form_ = *form;
    return true;
  }

  // Allocate [batch, heads, queries, value_dim] in the layout of the query or, for projections, in
  // that of a projection: once for attention and once more for the norm, if there is one.
  bool allocate_output() {
    const Problem& p = problem();
    const Layout& layout = arguments_.layout;
    if (!layout.is_projected()) return allocate_heads();
    const auto [first, second, features] = shape_of_mixed(layout, p);
    void* data = nullptr;
    output_ = new_tensor(torch_, like(), {first, second, features}, Content::as_given, data);
    if (!output_.is_valid()) return false;
    result_.output = place_of_mixed(data, layout, p);
    if (!norm_arguments_.is_given()) return true;
    mixed_ = output_;
    norm_.problem = norm_problem(data, layout, p, norm_arguments_.eps);
    output_ = torch_.empty_like(mixed_);
    const auto view = torch_.view(output_);
    if (!view) return false;
    norm_result_.output = view->data;
    return true;
  }

  bool allocate_heads() {
    const Problem& p = problem();
    const nb::handle value = arguments_.tensors[2];
    output_ = p.dim == p.value_dim ? torch_.empty_like(like()) : entry_.empty_output(like(), value);
    auto view = torch_.view(output_);
    if (view && view->strides[3] != 1 && p.value_dim > 1) {  // rows of the query overlap
      output_ = entry_.empty_output(like(), value);
      view = torch_.view(output_);
    }
    if (!view) return false;
    result_.output = place_of<Target>(*view);
    return true;
  }

  bool allocate_for_backward() {
    const Problem& p = problem();
    void* data = nullptr;
    if (is_recorded_ && norm_arguments_.is_given()) {
      const std::int64_t rows = p.batch * p.queries;
      inverse_rms_ = new_kept(torch_, like(), {rows}, Content::float32, rows * 4, data);
      if (!inverse_rms_.is_valid()) return false;
      norm_result_.inverse_rms = static_cast<float*>(data);
    }
    if (!(is_operator_ ? wishes_.keep_bits : is_recorded_ && can_keep_bits(p))) return true;
    const Torch::Shape shape = {p.batch, p.heads, p.queries, words_per_row(p)};
    bits_ = is_operator_
                ? new_tensor(torch_, like(), shape, Content::int64, data)
                : new_kept(torch_, like(), shape, Content::int64, bytes_of_bits(p), data);
    result_.bits = static_cast<std::uint64_t*>(data);
    return bits_.is_valid();
  }

  // Weights and statistics.
  bool allocate_details() {
    const Problem& p = problem();
    if (is_true(wishes_.statistics)) {
      void *counts = nullptr, *sums = nullptr;
      const Torch::Shape rows = {p.batch, p.heads, p.queries};
      counts_ = new_tensor(torch_, like(), rows, Content::int32, counts);
      sums_ = new_tensor(torch_, like(), rows, Content::float32, sums);
      if (!counts_.is_valid() || !sums_.is_valid()) return false;
      result_.row_counts = static_cast<std::int32_t*>(counts);
      result_.row_sums = static_cast<float*>(sums);
    }
    if (form_ == Form::dense) {
      weights_ = torch_.zeros(like(), {p.batch, p.heads, p.queries, p.keys});
      const auto view = torch_.view(weights_);
      if (!view) return false;
      writer_ = std::make_unique<DenseWeights>(view->data, p.dtype, p.keys);
    } else if (form_ == Form::sparse) {
      writer_ = std::make_unique<SparseWeights>(row_count(p));
    }
    result_.writer = writer_.get();
    return true;
  }

  void compute() {
    // Drawn last, so that a call that is not served leaves the generator alone.
    if (call_.needs_seed) call_.problem.seed = torch_.draw_seed();
    const int threads = torch_.threads();
    nb::gil_scoped_release unlocked;
    std::vector<ForwardJob> jobs;
    for (const Sequence& sequence : sequences_of(call_)) {
      jobs.push_back({sequence.problem, result_});
      Target& output = jobs.back().result.output;
      output = place_from(output, sequence.first_query, problem().dtype);
    }
    call_.kernels->forward(jobs.data(), static_cast<std::int64_t>(jobs.size()), threads);
    if (norm_arguments_.is_given()) {
      norm::run_forward(call_.kernels->isa, threads, norm_, norm_result_);
    }
  }

  bool take_sparse_weights() {
    const auto& found = static_cast<const SparseWeights&>(*writer_);
    void *starts = nullptr, *columns = nullptr, *numbers = nullptr;
    const std::int64_t rows = row_count(problem());
    const nb::object all_starts = new_tensor(torch_, like(), {rows + 1}, Content::int64, starts);
    const nb::object all_columns =
        new_tensor(torch_, like(), {found.size()}, Content::int64, columns);
    const nb::object all_numbers =
        new_tensor(torch_, like(), {found.size()}, Content::float32, numbers);
    if (!all_starts.is_valid() || !all_columns.is_valid() || !all_numbers.is_valid()) return false;
    found.write(static_cast<std::int64_t*>(starts), static_cast<std::int64_t*>(columns),
                static_cast<float*>(numbers));
    weights_ = nb::make_tuple(all_starts, all_columns, all_numbers, rows, problem().keys);
    return true;
  }

  // What autograd needs to know about the call: relakit.ops.native.attention.Options.
  nb::object options() const {
    const Problem& p = problem();
    return checked(Py_BuildValue(
        "(OdidKLidO)", arguments_.is_causal.ptr(), call_.scale, p.power,
        static_cast<double>(p.dropout), static_cast<unsigned long long>(p.seed),
        static_cast<long long>(arguments_.layout.heads), arguments_.layout.positions,
        norm_arguments_.eps, arguments_.reach.ptr()));
  }

  // Let autograd record the call. The arguments are those of
  // relakit.ops.native.attention.Attention.
  void record() {
    const nb::object computed = nb::make_tuple(output_, none_if_null(weights_));
    const nb::object kept =
        nb::make_tuple(none_if_null(mixed_), none_if_null(inverse_rms_), none_if_null(bits_));
    const nb::object call = options();
    constexpr int others = 7;
    PyObject* inputs[others + 3] = {
        computed.ptr(), kept.ptr(), call.ptr(), arguments_.mask.ptr(), arguments_.threshold.ptr(),
        norm_arguments_.gain.ptr(), norm_arguments_.gate.ptr()};
    for (int i = 0; i < arguments_.count; i++) inputs[others + i] = arguments_.tensors[i].ptr();
    const nb::object outputs = checked(PyObject_Vectorcall(
        entry_.record.ptr(), inputs, static_cast<std::size_t>(others + arguments_.count), nullptr));
    if (weights_.is_valid()) {
      output_ = outputs[0];
      weights_ = outputs[1];
    } else {
      output_ = outputs;
    }
  }

  const Entry& entry_;
  const Torch& torch_;
  const CallArguments& arguments_;
  const NormArguments& norm_arguments_;
  const Wishes& wishes_;
  const bool is_operator_;
  bool is_recorded_ = false;
  Form form_ = Form::none;
  ReadCall call_;
  norm::Call norm_;
  ForwardResult result_;
  norm::ForwardResult norm_result_;
  std::unique_ptr<WeightsWriter> writer_;
  nb::object output_, mixed_, inverse_rms_, bits_, weights_, counts_, sums_;
};

}  // namespace

nb::object forward(const Entry& entry, const CallArguments& arguments, const NormArguments& norm,
                   const Wishes& wishes) {
  return ForwardCall(entry, arguments, norm, wishes).run();
}

Entry::Entry(const nb::dict& parts)
    : torch(parts), record(parts["record"]), empty_output(parts["empty_output"]) {}

}  // namespace relakit::attention
