#include "attention/call_memory.h"

#include <cstddef>

namespace nb = nanobind;

namespace relakit::attention {

namespace {

// Up to this size, Python bytes are used, because a tensor takes longer to create than to fill.
constexpr std::int64_t kMostBytes = 4096;
static_assert(offsetof(PyBytesObject, ob_sval) % alignof(std::uint64_t) == 0);

}  // namespace

std::int64_t row_count(const Problem& p) { return p.batch * p.heads * p.queries; }

std::int64_t bytes_of_bits(const Problem& p) { return row_count(p) * words_per_row(p) * 8; }

bool can_keep_bits(const Problem& p) {
  const std::int64_t rows = row_count(p) + p.batch * p.key_heads * p.keys;
  return bytes_of_bits(p) <= rows * (p.dim + p.value_dim) * bytes_of(p.dtype);
}

std::array<std::int64_t, 3> shape_of_mixed(const Layout& layout, const Problem& p) {
  const std::int64_t features = p.heads * p.value_dim;
  if (layout.positions == 1) return {p.batch, p.queries, features};
  return {p.queries, p.batch, features};
}

Target place_of_mixed(void* data, const Layout& layout, const Problem& p) {
  const std::int64_t features = p.heads * p.value_dim;
  return layout.positions == 1 ? Target{data, p.queries * features, p.value_dim, features}
                               : Target{data, features, p.value_dim, p.batch * features};
}

norm::Problem norm_problem(const void* mixed, const Layout& layout, const Problem& p, double eps) {
  norm::Problem n;
  n.outer = layout.positions == 1 ? p.batch : p.queries;
  n.rows = layout.positions == 1 ? p.queries : p.batch;
  n.pieces = p.heads;
  n.size = p.value_dim;
  n.is_bfloat16 = p.dtype == DType::bf16;
  n.input = mixed;
  n.strides = {n.rows * p.heads * p.value_dim, p.heads * p.value_dim, p.value_dim};
  n.eps = static_cast<float>(eps);
  return n;
}

nb::object new_kept(const Torch& torch, nb::handle like, Torch::Shape shape, Torch::Content content,
                    std::int64_t bytes, void*& data) {
  if (bytes > kMostBytes) return new_tensor(torch, like, shape, content, data);
  nb::object kept = checked(PyBytes_FromStringAndSize(nullptr, bytes));
  data = PyBytes_AS_STRING(kept.ptr());
  return kept;
}

nb::object new_tensor(const Torch& torch, nb::handle like, Torch::Shape shape,
                      Torch::Content content, void*& data) {
  nb::object tensor = torch.empty(like, shape, content);
  const auto view = torch.view(tensor);
  data = view ? view->data : nullptr;
  return view ? tensor : nb::object();
}

bool read_kept(const Torch& torch, nb::handle kept, std::int64_t bytes, const void*& data) {
  if (kept.is_none()) return true;
  if (PyBytes_CheckExact(kept.ptr())) {
    data = PyBytes_AS_STRING(kept.ptr());
    return PyBytes_GET_SIZE(kept.ptr()) == bytes;
  }
  const auto view = torch.read(kept);
  if (!view || !dlpack::is_contiguous(*view)) return false;
  std::int64_t size = view->dtype.bits / 8;
  for (int i = 0; i < view->dims; i++) size *= view->shape[i];
  data = view->data;
  return size == bytes;
}

}  // namespace relakit::attention
