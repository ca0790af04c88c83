#include "attention/read_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cpu/dispatch.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

// The kernels of the chosen instruction set; null if RELAKIT_CPU_ISA names one that is not usable.
const Kernels* choose_kernels() {
  const std::string* isa = chosen_isa();
  return isa == nullptr ? nullptr : &find_kernels(*isa);
}

bool has_contiguous_features(const dlpack::Tensor& tensor) {
  const int last = tensor.dims - 1;
  return tensor.strides[last] == 1 || tensor.shape[last] <= 1;
}

// query, key and value as [batch, heads, positions, features].
bool read_heads(const Torch& torch, const CallArguments& arguments, Problem& p) {
  if (arguments.count != 3) return false;
  dlpack::Tensor tensors[3];
  for (int i = 0; i < 3; i++) {
    const auto tensor = read_tensor(torch, arguments, arguments.tensors[i]);
    if (!tensor || tensor->dims != 4 || !has_contiguous_features(*tensor)) return false;
    tensors[i] = *tensor;
  }
  const auto& [query, key, value] = tensors;
  const auto dtype = dtype_of(query);
  if (!dtype || dtype_of(key) != dtype || dtype_of(value) != dtype) return false;
  p.dtype = *dtype;
  p.batch = query.shape[0];
  p.heads = query.shape[1];
  p.queries = query.shape[2];
  p.dim = query.shape[3];
  p.key_heads = key.shape[1];
  p.keys = key.shape[2];
  p.value_dim = value.shape[3];
  if (!dlpack::has_shape(key, {p.batch, p.key_heads, p.keys, p.dim}) ||
      !dlpack::has_shape(value, {p.batch, p.key_heads, p.keys, p.value_dim})) {
    return false;
  }
  const bool do_heads_fit =
      p.heads == p.key_heads ||
      (arguments.is_grouped && p.key_heads > 0 && p.heads % p.key_heads == 0);
  if (!do_heads_fit) return false;
  p.query = place_of<View>(query);
  p.key = place_of<View>(key);
  p.value = place_of<View>(value);
  return true;
}

// The same, from projections.
bool read_projections(const Torch& torch, const CallArguments& arguments, Problem& p) {
  const int count = arguments.count;
  const Layout& layout = arguments.layout;
  if (count < 1 || count > 3 || layout.heads < 1) return false;
  dlpack::Tensor tensors[3];
  for (int i = 0; i < count; i++) {
    const auto tensor = read_tensor(torch, arguments, arguments.tensors[i]);
    if (!tensor || tensor->dims != 3 || !has_contiguous_features(*tensor)) return false;
    tensors[i] = *tensor;
  }
  const dlpack::Tensor &first = tensors[0], &last = tensors[count - 1];
  const auto dtype = dtype_of(first);
  const std::int64_t features = first.shape[2] / (count == 1 ? 3 : 1);
  const std::int64_t key_features = last.shape[2] / (4 - count);
  if (!dtype || features == 0 || features % layout.heads != 0) return false;
  const int positions = layout.positions;
  p.dtype = *dtype;
  p.batch = first.shape[1 - positions];
  p.heads = p.key_heads = layout.heads;
  p.dim = p.value_dim = features / layout.heads;
  if (key_features != features) {
    if (key_features <= 0 || key_features % p.dim != 0) return false;
    p.key_heads = key_features / p.dim;
    if (p.heads % p.key_heads != 0) return false;
  }
  p.queries = first.shape[positions];
  p.keys = last.shape[positions];
  for (int i = 0; i < count; i++) {
    const dlpack::Tensor& tensor = tensors[i];
    const std::int64_t parts = count == 1 ? 3 : count == 2 && i == 1 ? 2 : 1;
    if (dtype_of(tensor) != dtype || tensor.shape[1 - positions] != p.batch ||
        tensor.shape[positions] != (i == 0 ? p.queries : p.keys) ||
        tensor.shape[2] != parts * (i == 0 ? features : key_features)) {
      return false;
    }
  }
  const auto place = [&](const ProjectedParts::Part& where) {
    return place_in<View>(tensors[where.tensor], layout, p.dtype, where.part * key_features, p.dim);
  };
  const ProjectedParts parts = parts_of(count);
  p.query = place(parts.query);
  p.key = place(parts.key);
  p.value = place(parts.value);
  return true;
}

bool read_number(nb::handle object, double& number) {
  if (!PyFloat_Check(object.ptr()) && !PyLong_Check(object.ptr())) return false;
  number = PyFloat_AsDouble(object.ptr());
  if (number == -1.0 && PyErr_Occurred()) {  // an integer too large for a double
    PyErr_Clear();
    return false;
  }
  return true;
}

bool read_options(const CallArguments& arguments, ReadCall& call) {
  Problem& p = call.problem;
  if (arguments.scale.is_none()) {
    // Without features all scores are 0, whatever the scale.
    call.scale = p.dim == 0 ? 1.0 : std::pow(static_cast<double>(p.dim), -0.5);
  } else if (!read_number(arguments.scale, call.scale)) {
    return false;
  }
  p.scale = static_cast<float>(call.scale);
  double power = 0.0;
  if (!read_number(arguments.power, power) || (power != 1.0 && power != 2.0)) return false;
  p.power = static_cast<int>(power);
  return true;
}

// How far a query sees to one side; a negative number means no limit.
bool read_distance(PyObject* object, std::int64_t& distance) {
  if (!PyLong_Check(object)) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  const bool is_limited = overflow == 0 && number >= 0 && number < kUnlimited / 2;
  distance = is_limited ? number : kUnlimited;
  return true;
}

// The starts of sequences: 0 first, then ascending, up to the number of positions.
bool read_starts(const Torch& torch, const CallArguments& arguments, PyObject* object,
                 std::int64_t positions, std::vector<std::int64_t>& starts) {
  const auto tensor = read_tensor(torch, arguments, object);
  if (!tensor || tensor->dims != 1 || !dlpack::has_dtype(*tensor, dlpack::kInt, 64)) return false;
  const auto* data = static_cast<const std::int64_t*>(tensor->data);
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor->shape[0]; i++) {
    const std::int64_t start = data[i * tensor->strides[0]];
    if (start < last || (i == 0 && start != 0)) return false;
    starts.push_back(last = start);
  }
  return !starts.empty() && last == positions;
}

// Place queries among the keys of their own sequence, and set which keys they see from there.
void set_diagonals(const Reach& reach, Problem& p) {
  const std::int64_t shift = reach.is_lower_right ? p.keys - p.queries : 0;
  p.first_diagonal = reach.before == kUnlimited ? -kUnlimited : shift - reach.before;
  p.last_diagonal = reach.after == kUnlimited ? kUnlimited : shift + reach.after;
}

bool read_reach(const Torch& torch, const CallArguments& arguments, ReadCall& call) {
  Problem& p = call.problem;
  Reach& reach = call.reach;
  p.rows_per_head = p.queries;
  p.bits_per_row = p.keys;
  PyObject* given = arguments.reach.ptr();
  if (!PyBool_Check(arguments.is_causal.ptr())) return false;
  const bool is_causal = arguments.is_causal.ptr() == Py_True;
  if (given == Py_None) {
    if (is_causal) p.last_diagonal = 0;
    return !is_causal || arguments.mask.is_none();
  }
  if (is_causal || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 5) return false;
  if (!read_distance(PyTuple_GET_ITEM(given, 0), reach.before) ||
      !read_distance(PyTuple_GET_ITEM(given, 1), reach.after)) {
    return false;
  }
  reach.is_lower_right = PyTuple_GET_ITEM(given, 2) == Py_True;
  set_diagonals(reach, p);
  PyObject *queries = PyTuple_GET_ITEM(given, 3), *keys = PyTuple_GET_ITEM(given, 4);
  if (queries == Py_None && keys == Py_None) return true;
  if (!read_starts(torch, arguments, queries, p.queries, reach.query_starts) ||
      !read_starts(torch, arguments, keys, p.keys, reach.key_starts) ||
      reach.query_starts.size() != reach.key_starts.size()) {
    return false;
  }
  p.bits_per_row = 0;  // as many as the longest sequence has keys
  for (std::size_t i = 1; i < reach.key_starts.size(); i++) {
    p.bits_per_row = std::max(p.bits_per_row, reach.key_starts[i] - reach.key_starts[i - 1]);
  }
  return true;
}

bool read_dropout(const CallArguments& arguments, ReadCall& call) {
  Problem& p = call.problem;
  double probability = 0.0;
  if (!read_number(arguments.dropout, probability)) return false;
  if (arguments.seed.is_none()) {
    call.needs_seed = probability > 0.0;
  } else {
    p.seed = PyLong_AsUnsignedLongLong(arguments.seed.ptr());
    if (PyErr_Occurred()) nb::raise_python_error();
  }
  p.dropout = static_cast<float>(probability);
  return probability >= 0.0 && probability <= 1.0;
}

bool read_threshold(const Torch& torch, const CallArguments& arguments, ReadCall& call) {
  Problem& p = call.problem;
  if (arguments.threshold.is_none()) return true;
  double number = 0.0;
  if (read_number(arguments.threshold, number)) {
    if (!(std::fabs(number) <= std::numeric_limits<float>::max())) return false;
    if (number == 0.0) return true;
    call.thresholds.assign(static_cast<std::size_t>(p.heads), static_cast<float>(number));
  } else {
    const auto tensor = read_tensor(torch, arguments, arguments.threshold);
    if (!tensor || !dlpack::is_float32(*tensor) || !dlpack::has_shape(*tensor, {p.heads})) {
      return false;
    }
    const auto* data = static_cast<const float*>(tensor->data);
    for (std::int64_t i = 0; i < p.heads; i++) {
      call.thresholds.push_back(data[i * tensor->strides[0]]);
    }
  }
  p.threshold = call.thresholds.data();
  return true;
}

bool read_mask(const Torch& torch, const CallArguments& arguments, Problem& p) {
  if (arguments.mask.is_none()) return true;
  const auto mask = read_tensor(torch, arguments, arguments.mask);
  if (!mask || mask->dims > 4) return false;
  if (!arguments.is_trusted && torch.requires_grad(arguments.mask)) return false;
  if (dlpack::has_dtype(*mask, dlpack::kBool, 8)) {
    p.mask.kind = Mask::Kind::boolean;
  } else if (dlpack::is_float32(*mask)) {
    p.mask.kind = Mask::Kind::additive;
  } else if (dlpack::is_bfloat16(*mask) && p.dtype == DType::bf16) {
    p.mask.kind = Mask::Kind::additive_bf16;
  } else {
    return false;
  }
  const std::int64_t full[] = {p.batch, p.heads, p.queries, p.keys};
  std::int64_t* strides[] = {&p.mask.batch, &p.mask.head, &p.mask.row, &p.mask.column};
  const int missing = 4 - mask->dims;
  for (int i = 0; i < 4; i++) {
    const std::int64_t size = i < missing ? 1 : mask->shape[i - missing];
    if (size != full[i] && size != 1) return false;
    *strides[i] = size == 1 ? 0 : mask->strides[i - missing];  // 0 where it broadcasts
  }
  p.mask.data = mask->data;
  return true;
}

}  // namespace

std::optional<dlpack::Tensor> read_tensor(const Torch& torch, const CallArguments& arguments,
                                          nb::handle object) {
  return arguments.is_trusted ? torch.view(object) : torch.read(object);
}

std::optional<DType> dtype_of(const dlpack::Tensor& tensor) {
  if (dlpack::is_float32(tensor)) return DType::f32;
  if (dlpack::is_bfloat16(tensor)) return DType::bf16;
  return std::nullopt;
}

std::vector<Sequence> sequences_of(const ReadCall& call) {
  const Problem& whole = call.problem;
  const auto &queries = call.reach.query_starts, &keys = call.reach.key_starts;
  if (queries.empty()) return {{whole, 0, 0}};
  const std::int64_t mask_bytes = bytes_of(whole.mask.kind);
  std::vector<Sequence> sequences;
  for (std::size_t i = 1; i < queries.size(); i++) {
    const std::int64_t query = queries[i - 1], key = keys[i - 1];
    Problem p = whole;
    p.queries = queries[i] - query;
    p.keys = keys[i] - key;
    p.query = place_from(p.query, query, p.dtype);
    p.key = place_from(p.key, key, p.dtype);
    p.value = place_from(p.value, key, p.dtype);
    if (p.mask.kind != Mask::Kind::none) {
      p.mask.data = static_cast<const char*>(p.mask.data) +
                    (query * p.mask.row + key * p.mask.column) * mask_bytes;
    }
    p.first_row = query;
    p.first_column = key;
    set_diagonals(call.reach, p);
    sequences.push_back({p, query, key});
  }
  return sequences;
}

bool read_call(const Torch& torch, const CallArguments& arguments, ReadCall& call) {
  Problem& p = call.problem;
  const bool are_tensors_read = arguments.layout.is_projected()
                                    ? read_projections(torch, arguments, p)
                                    : read_heads(torch, arguments, p);
  if (!are_tensors_read || p.dim > kLargestDim || p.value_dim > kLargestDim) return false;
  if (!read_options(arguments, call) || !read_reach(torch, arguments, call) ||
      !read_dropout(arguments, call) ||
      !read_threshold(torch, arguments, call) || !read_mask(torch, arguments, p)) {
    return false;
  }
  call.kernels = choose_kernels();
  return call.kernels != nullptr;
}

}  // namespace relakit::attention
