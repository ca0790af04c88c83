#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "attention/kernels.h"
#include "attention/problem.h"
#include "torch/torch.h"

// From Python's arguments to a Problem: the only place where C++ checks a call. A call that is
// wrong, or that the kernels do not serve, is not read; Python then computes it in another way or
// raises the error.

namespace relakit::attention {

// The most features per head.
constexpr std::int64_t kLargestDim = 256;

// How heads are laid out in the tensors of a call.
struct Layout {
  // If 0, query, key and value are [batch, heads, positions, features]. Otherwise they are
  // projections, [batch, positions, heads * features]: three of them, or query and [key | value],
  // or all in one. Keys and values may have fewer heads, unless all are in one.
  std::int64_t heads = 0;
  int positions = 1;  // dimension of the positions in a projection: 0 or 1

  bool is_projected() const { return heads != 0; }
};

// Where query, key and value are in one, two or three projections: which tensor, and which part of
// it.
struct ProjectedParts {
  struct Part {
    int tensor, part;
  } query, key, value;
};
inline ProjectedParts parts_of(int count) {
  return count == 1   ? ProjectedParts{{0, 0}, {0, 1}, {0, 2}}
         : count == 2 ? ProjectedParts{{0, 0}, {1, 0}, {1, 1}}
                      : ProjectedParts{{0, 0}, {1, 0}, {2, 0}};
}

// Arguments as Python passes them, including None.
struct CallArguments {
  nanobind::handle tensors[3];  // query, key, value; or projections
  int count = 3;
  Layout layout;
  nanobind::handle mask, threshold;
  nanobind::handle is_causal, scale, power;
  nanobind::handle reach = nanobind::handle(Py_None);  // None or relakit.ops.reach.Reach
  nanobind::handle dropout;  // a probability
  nanobind::handle seed = nanobind::handle(Py_None);  // for dropout; drawn if None
  bool is_grouped = false;   // several query heads may share a key head
  bool is_trusted = false;   // torch made the tensors ordinary, and nothing else watches them
};

// Which keys a query sees by its position, from relakit.ops.reach.Reach.
struct Reach {
  std::int64_t before = kUnlimited, after = kUnlimited;  // counted from the key at its position
  bool is_lower_right = false;  // aligns the last query and key instead of the first ones
  // Where packed sequences begin, and where the last one ends; empty if they are not packed.
  std::vector<std::int64_t> query_starts, key_starts;
};

// A call that the kernels can serve.
struct ReadCall {
  Problem problem;
  Reach reach;
  const Kernels* kernels = nullptr;
  double scale = 1.0;
  bool needs_seed = false;        // for dropout, still to be drawn
  std::vector<float> thresholds;  // what problem.threshold points to

  ReadCall() = default;
  ReadCall(const ReadCall&) = delete;
  ReadCall& operator=(const ReadCall&) = delete;
};

// One of the sequences of a call; the whole call if sequences are not packed.
struct Sequence {
  Problem problem;
  std::int64_t first_query, first_key;
};
std::vector<Sequence> sequences_of(const ReadCall& call);

// The rows of a place, from `row` on.
template <class Place>
Place place_from(Place place, std::int64_t row, DType dtype) {
  using Bytes = std::conditional_t<std::is_same_v<Place, View>, const char*, char*>;
  place.data = static_cast<Bytes>(place.data) + row * place.row * bytes_of(dtype);
  return place;
}

// Returns whether the call could be read.
bool read_call(const Torch& torch, const CallArguments& arguments, ReadCall& call);

// One of a call's tensors; nothing if the kernels cannot use it.
std::optional<dlpack::Tensor> read_tensor(const Torch& torch, const CallArguments& arguments,
                                          nanobind::handle object);

std::optional<DType> dtype_of(const dlpack::Tensor& tensor);

// The place of heads in a tensor [batch, heads, positions, features].
template <class Place>
Place place_of(const dlpack::Tensor& tensor) {
  return {tensor.data, tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

// The place of heads of `dim` features in the part of a projection that begins at `first_feature`.
template <class Place>
Place place_in(const dlpack::Tensor& projection, const Layout& layout, DType dtype,
               std::int64_t first_feature, std::int64_t dim) {
  const std::int64_t bytes = first_feature * bytes_of(dtype);
  return {static_cast<char*>(projection.data) + bytes, projection.strides[1 - layout.positions], dim,
          projection.strides[layout.positions]};
}

}  // namespace relakit::attention
