// A backward call, from Python's arguments to the gradients.

#include <cstddef>
#include <memory>
#include <vector>

#include "attention/call_memory.h"
#include "attention/entry.h"
#include "norm/read_norm.h"
#include "norm/run.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

class BackwardCall {
 public:
  BackwardCall(const Entry& entry, const CallArguments& arguments, const NormArguments& norm,
               const Kept& kept, bool wants_threshold)
      : torch_(entry.torch),
        arguments_(arguments),
        norm_arguments_(norm),
        kept_(kept),
        wants_threshold_(wants_threshold) {}

  nb::object run(nb::handle grad_output) {
    if (!arguments_.is_trusted && (torch_.is_grad_enabled() || !torch_.is_plain())) {
      return nb::none();
    }
    if (!read_call(torch_, arguments_, call_) || !read_upstream(grad_output) || !read_bits() ||
        !allocate()) {
      return nb::none();
    }
    if (norm_arguments_.is_given() && !prepare_norm()) return nb::none();
    compute();
    return answer();
  }

 private:
  const Problem& problem() const { return call_.problem; }

  bool read_upstream(nb::handle grad_output) {
    const Problem& p = problem();
    const Layout& layout = arguments_.layout;
    upstream_ = nb::borrow(grad_output);
    auto view = read_tensor(torch_, arguments_, upstream_);
    if (view && view->dims > 0 && view->strides[view->dims - 1] != 1) {
      upstream_ = upstream_.attr("contiguous")();
      view = read_tensor(torch_, arguments_, upstream_);
    }
    if (!view || dtype_of(*view) != p.dtype) return false;
    upstream_view_ = *view;
    if (!layout.is_projected()) {
      if (!dlpack::has_shape(*view, {p.batch, p.heads, p.queries, p.value_dim})) return false;
      result_.grad_output = place_of<View>(*view);
      return true;
    }
    const auto [first, second, features] = shape_of_mixed(layout, p);
    if (!dlpack::has_shape(*view, {first, second, features})) return false;
    result_.grad_output = place_in<View>(*view, layout, p.dtype, 0, p.value_dim);
    return true;
  }

  bool read_bits() {
    const void* data = nullptr;
    if (!read_kept(torch_, kept_.bits, bytes_of_bits(problem()), data)) return false;
    result_.bits = static_cast<const std::uint64_t*>(data);
    return true;
  }

  // Allocate contiguous gradients, one like each of the tensors, and grad_rows if wanted.
  bool allocate() {
    const Problem& p = problem();
    dlpack::Tensor views[3];
    for (int i = 0; i < arguments_.count; i++) {
      const nb::handle tensor = arguments_.tensors[i];
      const auto like = torch_.view(tensor);
      gradients_[i] = like && dlpack::is_contiguous(*like) ? torch_.empty_like(tensor)
                                                           : torch_.contiguous_empty_like(tensor);
      const auto view = torch_.view(gradients_[i]);
      if (!view) return false;
      views[i] = *view;
    }
    place_gradients(views);
    if (!wants_threshold_) return true;
    void* data = nullptr;
    grad_rows_ = new_tensor(torch_, arguments_.tensors[0], {p.batch, p.heads, p.queries},
                            Torch::Content::float32, data);
    result_.grad_rows = static_cast<float*>(data);
    return grad_rows_.is_valid();
  }

  void place_gradients(const dlpack::Tensor (&views)[3]) {
    const Problem& p = problem();
    if (!arguments_.layout.is_projected()) {
      result_.grad_query = place_of<Target>(views[0]);
      result_.grad_key = place_of<Target>(views[1]);
      result_.grad_value = place_of<Target>(views[2]);
      return;
    }
    const auto place = [&](const ProjectedParts::Part& where) {
      return place_in<Target>(views[where.tensor], arguments_.layout, p.dtype,
                              where.part * p.key_heads * p.dim, p.dim);
    };
    const ProjectedParts parts = parts_of(arguments_.count);
    result_.grad_query = place(parts.query);
    result_.grad_key = place(parts.key);
    result_.grad_value = place(parts.value);
  }

  // The gradient goes through the norm first, into scratch memory, and from there to the kernels.
  bool prepare_norm() {
    const Problem& p = problem();
    const std::int64_t rows = p.batch * p.queries, features = p.heads * p.value_dim;
    const auto mixed = torch_.read(kept_.mixed);
    const void* inverse_rms = nullptr;
    if (!mixed || mixed->dims != 3 || dtype_of(*mixed) != p.dtype ||
        !dlpack::is_contiguous(*mixed) ||
        mixed->shape[0] * mixed->shape[1] * mixed->shape[2] != rows * features ||
        !read_kept(torch_, kept_.inverse_rms, rows * 4, inverse_rms) ||
        !norm::read_parameters(torch_, norm_arguments_.gain, norm_arguments_.gate, features, norm_)) {
      return false;
    }
    norm_.problem = norm_problem(mixed->data, arguments_.layout, p, norm_arguments_.eps);
    norm_result_.inverse_rms = static_cast<const float*>(inverse_rms);
    norm_result_.grad_output = upstream_view_.data;
    norm_result_.grad_output_strides = {upstream_view_.strides[0], upstream_view_.strides[1],
                                        p.value_dim};
    // make_unique would fill it with zeros.
    grad_mixed_.reset(new char[static_cast<std::size_t>(rows * features * bytes_of(p.dtype))]);
    norm_result_.grad_input = grad_mixed_.get();
    norm_result_.grad_input_strides = norm_.problem.strides;
    const Target place = place_of_mixed(grad_mixed_.get(), arguments_.layout, p);
    result_.grad_output = {place.data, place.batch, place.head, place.row};
    grad_gain_ = torch_.empty_like(norm_arguments_.gain);
    if (!write_to(grad_gain_, norm_.gain.is_bfloat16, to_gain_)) return false;
    if (norm_arguments_.gate.is_none()) return true;
    grad_gate_ = torch_.empty_like(norm_arguments_.gate);
    return write_to(grad_gate_, norm_.gate.is_bfloat16, to_gate_);
  }

  bool write_to(const nb::object& gradient, bool is_bfloat16, norm::Parameter& parameter) const {
    const auto view = torch_.view(gradient);
    if (view) parameter = {view->data, is_bfloat16};
    return view.has_value();
  }

  void compute() {
    const int threads = torch_.threads();
    nb::gil_scoped_release unlocked;
    if (norm_arguments_.is_given()) {
      norm::run_backward(call_.kernels->isa, threads, norm_, norm_result_, to_gain_, to_gate_);
    }
    std::vector<BackwardJob> jobs;
    for (const Sequence& sequence : sequences_of(call_)) {
      BackwardResult part = result_;
      const DType dtype = problem().dtype;
      part.grad_output = place_from(part.grad_output, sequence.first_query, dtype);
      part.grad_query = place_from(part.grad_query, sequence.first_query, dtype);
      part.grad_key = place_from(part.grad_key, sequence.first_key, dtype);
      part.grad_value = place_from(part.grad_value, sequence.first_key, dtype);
      jobs.push_back({sequence.problem, part});
    }
    call_.kernels->backward(jobs.data(), static_cast<std::int64_t>(jobs.size()), threads);
  }

  // The gradients in the order of the arguments of relakit.ops.native.attention.Attention.
  nb::object answer() {
    constexpr int others = 7;
    nb::object all = checked(PyTuple_New(others + arguments_.count));
    const nb::object none = nb::none();
    nb::object first[others] = {none, none, none, none, grad_rows_, grad_gain_, grad_gate_};
    for (int i = 0; i < others + arguments_.count; i++) {
      nb::object& gradient = i < others ? first[i] : gradients_[i - others];
      PyTuple_SET_ITEM(all.ptr(), i, (gradient.is_valid() ? gradient : none).inc_ref().ptr());
    }
    return all;
  }

  const Torch& torch_;
  const CallArguments& arguments_;
  const NormArguments& norm_arguments_;
  const Kept& kept_;
  const bool wants_threshold_;
  ReadCall call_;
  BackwardResult result_;
  norm::Call norm_;
  norm::BackwardResult norm_result_;
  norm::Parameter to_gain_, to_gate_;
  dlpack::Tensor upstream_view_{};
  std::unique_ptr<char[]> grad_mixed_;
  nb::object upstream_, gradients_[3], grad_rows_, grad_gain_, grad_gate_;
};

}  // namespace

nb::object backward(const Entry& entry, const CallArguments& arguments, const NormArguments& norm,
                    const Kept& kept, nb::handle grad_output, bool wants_threshold) {
  return BackwardCall(entry, arguments, norm, kept, wants_threshold).run(grad_output);
}

}  // namespace relakit::attention
