#include "simplex/entry.h"

#include <optional>
#include <string>

#include "cpu/dispatch.h"
#include "simplex/run.h"

namespace nb = nanobind;

namespace relakit::simplex {

namespace {

std::optional<dlpack::Tensor> read_floats(const Torch& torch, nb::handle object) {
  const auto tensor = torch.read(object);
  if (!tensor || !dlpack::is_float32(*tensor) || !dlpack::is_contiguous(*tensor)) return std::nullopt;
  return tensor;
}

std::int64_t elements_of(const dlpack::Tensor& tensor) {
  std::int64_t count = 1;
  for (int i = 0; i < tensor.dims; i++) count *= tensor.shape[i];
  return count;
}

Problem problem_of(const dlpack::Tensor& tensor, bool is_squared) {
  Problem p;
  p.keys = tensor.shape[tensor.dims - 1];
  p.rows = p.keys == 0 ? 0 : elements_of(tensor) / p.keys;
  p.is_squared = is_squared;
  return p;
}

}  // namespace

nb::object SimplexEntry::forward(nb::handle scores, bool is_squared) const {
  if (!torch_.is_plain()) return nb::none();
  const auto input = read_floats(torch_, scores);
  const std::string* isa = chosen_isa();
  if (!input || input->dims < 1 || isa == nullptr) return nb::none();
  const nb::object weights = torch_.contiguous_empty_like(scores);
  const auto target = torch_.view(weights);
  if (!target) return nb::none();
  const Forward f{static_cast<const float*>(input->data), static_cast<float*>(target->data)};
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_forward(*isa, threads, problem_of(*input, is_squared), f);
  }
  return weights;
}

nb::object SimplexEntry::backward(nb::handle grad_weights, nb::handle weights,
                                  bool is_squared) const {
  if (!torch_.is_plain()) return nb::none();
  const auto kept = read_floats(torch_, weights), upstream = read_floats(torch_, grad_weights);
  const std::string* isa = chosen_isa();
  if (!kept || !upstream || kept->dims < 1 || isa == nullptr ||
      elements_of(*upstream) != elements_of(*kept)) {
    return nb::none();
  }
  const nb::object grad_scores = torch_.contiguous_empty_like(weights);
  const auto target = torch_.view(grad_scores);
  if (!target) return nb::none();
  const Backward b{static_cast<const float*>(kept->data), static_cast<const float*>(upstream->data),
                   static_cast<float*>(target->data)};
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_backward(*isa, threads, problem_of(*kept, is_squared), b);
  }
  return grad_scores;
}

}  // namespace relakit::simplex
