#include "simplex/entry.h"

#include <optional>
#include <string>
#include <vector>

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

Problem problem_of(const dlpack::Tensor& scores, bool is_squared) {
  Problem p;
  p.keys = scores.shape[scores.dims - 1];
  p.rows = p.keys == 0 ? 0 : elements_of(scores) / p.keys;
  p.is_squared = is_squared;
  p.scores = static_cast<const float*>(scores.data);
  return p;
}

}  // namespace

nb::object SimplexEntry::forward(nb::handle scores, bool is_squared) const {
  if (!torch_.is_plain()) return nb::none();
  const auto input = read_floats(torch_, scores);
  const std::string* isa = chosen_isa();
  if (!input || input->dims < 1 || isa == nullptr) return nb::none();
  const Problem p = problem_of(*input, is_squared);
  std::vector<std::int64_t> shape(input->shape, input->shape + input->dims - 1);
  shape.push_back(2);
  const nb::object weights = torch_.contiguous_empty_like(scores);
  const nb::object rows = torch_.empty(scores, shape, Torch::Content::float32);
  const auto weights_view = torch_.view(weights), rows_view = torch_.view(rows);
  if (!weights_view || !rows_view) return nb::none();
  const ForwardResult result{static_cast<float*>(weights_view->data),
                             static_cast<Row*>(rows_view->data)};
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_forward(*isa, threads, p, result);
  }
  return nb::make_tuple(weights, rows);
}

nb::object SimplexEntry::backward(nb::handle grad_weights, nb::handle scores, nb::handle rows,
                                  bool is_squared) const {
  if (!torch_.is_plain()) return nb::none();
  const auto input = read_floats(torch_, scores), kept = read_floats(torch_, rows);
  const auto upstream = read_floats(torch_, grad_weights);
  const std::string* isa = chosen_isa();
  if (!input || !kept || !upstream || input->dims < 1 || isa == nullptr) return nb::none();
  const Problem p = problem_of(*input, is_squared);
  if (elements_of(*upstream) != elements_of(*input) || elements_of(*kept) < 2 * p.rows) {
    return nb::none();
  }
  const nb::object grad_scores = torch_.contiguous_empty_like(scores);
  const auto target = torch_.view(grad_scores);
  if (!target) return nb::none();
  const BackwardResult result{static_cast<const float*>(upstream->data),
                              static_cast<const Row*>(kept->data), static_cast<float*>(target->data)};
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_backward(*isa, threads, p, result);
  }
  return grad_scores;
}

}  // namespace relakit::simplex
