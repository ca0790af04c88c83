#pragma once

#include <cstdint>

// One attention call as the kernels see it. Sizes and strides are in elements. The last dimension
// of query, key, value, output and its gradient is contiguous. Other strides may be anything, even
// 0 in tensors that are only read.

namespace relakit::attention {

enum class DType { f32, bf16 };

static inline std::int64_t bytes_of(DType dtype) { return dtype == DType::bf16 ? 2 : 4; }

template <class Pointer>
struct Strided {
  Pointer data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  // strides
};
using View = Strided<const void*>;
using Target = Strided<void*>;

struct Mask {
  enum class Kind { none, boolean, additive, additive_bf16 };
  Kind kind = Kind::none;
  const void* data = nullptr;  // bool (one byte, 1 = attend), float or bfloat16
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  // strides
};

// Bytes per entry of a mask.
static inline std::int64_t bytes_of(Mask::Kind kind) {
  if (kind == Mask::Kind::boolean) return 1;
  return bytes_of(kind == Mask::Kind::additive_bf16 ? DType::bf16 : DType::f32);
}

// Larger than any distance between a query and a key. Adding a position to it does not overflow.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

struct Problem {
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, dim = 0, value_dim = 0;
  DType dtype = DType::f32;
  View query, key, value;
  Mask mask;
  // Query i sees keys i + first_diagonal to i + last_diagonal: causality and windows.
  std::int64_t first_diagonal = -kUnlimited, last_diagonal = kUnlimited;
  float scale = 1.0f;
  const float* threshold = nullptr;  // one number per head; null means 0
  int power = 1;                     // 1 or 2
  float dropout = 0.0f;
  std::uint64_t seed = 0;
  // For one of several packed sequences: where its queries start among all rows of a head, where
  // its keys start among all columns, how many rows a head has and how many bits a row has.
  std::int64_t first_row = 0, first_column = 0, rows_per_head = 0, bits_per_row = 0;
};

// Each score has one bit, 64 keys to a word: whether the score is visible and above its threshold.
static inline std::int64_t words_per_row(const Problem& p) { return (p.bits_per_row + 63) / 64; }

// Receives the non-zero weights as they are found: for each row, in ascending order of keys.
class WeightsWriter {
 public:
  virtual ~WeightsWriter();
  // `row` counts [batch, heads, queries]. No two threads call it for the same row.
  virtual void add(std::int64_t row, std::int64_t first_key, const std::uint8_t* positions,
                   const float* weights, int count) = 0;
};

// Fields are null if the caller does not want them. Rows are [batch, heads, queries].
struct ForwardResult {
  Target output;                      // in the problem's dtype
  std::uint64_t* bits = nullptr;      // [rows, words_per_row]
  float* row_sums = nullptr;          // [rows]
  std::int32_t* row_counts = nullptr;  // [rows]: number of non-zero weights
  WeightsWriter* writer = nullptr;
};

// Results are in the problem's dtype, except grad_rows.
struct BackwardResult {
  View grad_output;
  const std::uint64_t* bits = nullptr;  // what forward wrote; if null, found again
  Target grad_query;                    // [batch, heads, queries, dim]
  Target grad_key;                      // [batch, key_heads, keys, dim]
  Target grad_value;                    // [batch, key_heads, keys, value_dim]
  float* grad_rows = nullptr;           // [rows]: the scores' gradients, summed over keys, or null
};

// A problem and where its result goes. Each packed sequence is a job of its own.
template <class Result>
struct Job {
  Problem problem;
  Result result;
  // For the kernels: where the job's tasks begin among those of all jobs, and where their sums do.
  std::int64_t first_task = 0, first_sum = 0;
};
using ForwardJob = Job<ForwardResult>;
using BackwardJob = Job<BackwardResult>;

}  // namespace relakit::attention
