#pragma once

#include <cstdint>

// One attention call as the kernels see it. Sizes and strides are in elements. The last dimension of
// query, key, value and of the output's gradient is contiguous; every other stride is free, also 0.

namespace relakit {

enum class DType { f32, bf16 };

struct View {
  const void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  // strides
};

struct Mask {
  enum class Kind { none, boolean, additive };
  Kind kind = Kind::none;
  const void* data = nullptr;  // bool (one byte, 1 = attend) or float
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  // strides
};

struct Problem {
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, dim = 0, value_dim = 0;
  DType dtype = DType::f32;
  View query, key, value;
  Mask mask;
  bool causal = false;
  float scale = 1.0f;
  const float* threshold = nullptr;  // one number per head
  int power = 1;                     // 1 or 2
  float dropout = 0.0f;
  std::uint64_t seed = 0;
};

// Contiguous results, in the problem's dtype unless another type is named.
struct ForwardResult {
  void* output = nullptr;  // [batch, heads, queries, value_dim]
};

struct BackwardResult {
  View grad_output;                 // [batch, heads, queries, value_dim]
  void* grad_query = nullptr;       // [batch, heads, queries, dim]
  void* grad_key = nullptr;         // [batch, key_heads, keys, dim]
  void* grad_value = nullptr;       // [batch, key_heads, keys, value_dim]
  float* grad_threshold = nullptr;  // [batch, heads]: the sum over queries and keys
};

// The kernels of one instruction set.
struct Kernels {
  const char* name;
  void (*forward)(const Problem&, const ForwardResult&, int threads);
  void (*backward)(const Problem&, const BackwardResult&, int threads);
};

extern const Kernels portable_kernels;
#if defined(RELAKIT_WITH_AVX2)
extern const Kernels avx2_kernels;
#endif
#if defined(RELAKIT_WITH_AVX512)
extern const Kernels avx512_kernels;
#endif

}  // namespace relakit
