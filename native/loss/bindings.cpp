#include "loss/bindings.h"

#include <string>

#include "cpu/dispatch.h"
#include "loss/run.h"

namespace nb = nanobind;

namespace relakit::loss {

namespace {

const Torch* connected = nullptr;

bool is_vector_of(const dlpack::Tensor& tensor, std::int64_t size) {
  return dlpack::has_shape(tensor, {size}) && dlpack::is_contiguous(tensor);
}

// The losses of all rows, [rows, 2]; None if the kernels do not serve the call.
nb::object losses(nb::handle logits, nb::handle targets, double smoothing, nb::handle shares,
                  bool wants_gradient) {
  if (connected == nullptr || !connected->is_plain()) return nb::none();
  const Torch& torch = *connected;
  const auto input = torch.read(logits), wanted = torch.read(targets);
  const std::string* isa = isa_outside_attention();
  if (!input || !wanted || isa == nullptr || input->dims != 2) return nb::none();
  Problem p;
  p.rows = input->shape[0];
  p.vocabulary = input->shape[1];
  p.is_bfloat16 = dlpack::is_bfloat16(*input);
  if ((!p.is_bfloat16 && !dlpack::is_float32(*input)) || !dlpack::is_contiguous(*input) ||
      !dlpack::has_dtype(*wanted, dlpack::kInt, 64) || !is_vector_of(*wanted, p.rows)) {
    return nb::none();
  }
  p.logits = input->data;
  p.targets = static_cast<const std::int64_t*>(wanted->data);
  p.smoothing = static_cast<float>(smoothing);
  if (!shares.is_none()) {
    const auto given = torch.read(shares);
    if (!given || !dlpack::is_float32(*given) || !is_vector_of(*given, p.rows)) return nb::none();
    p.shares = static_cast<const float*>(given->data);
  }
  const nb::object found = torch.empty(logits, {p.rows, 2}, Torch::Content::float32);
  const auto target = torch.view(found);
  if (!target) return nb::none();
  const Result result{static_cast<Losses*>(target->data), wants_gradient ? input->data : nullptr};
  const int threads = torch.threads();
  {
    nb::gil_scoped_release unlocked;
    run(*isa, threads, p, result);
  }
  return found;
}

}  // namespace

void connect(const Torch& torch) { connected = &torch; }

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
void bind(nb::module_& m) {
  m.def("smoothed_losses", &losses, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace relakit::loss
