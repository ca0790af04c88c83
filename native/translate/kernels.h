#pragma once

#include <cstdint>

// What the decoder computes in its inner loops, as the kernels of one instruction set see it.

namespace relakit::decode {

// Weights lie in panels of this many outputs, which are computed together; the last one is filled up.
constexpr std::int64_t kPanel = 64;
// Inputs are quantised to 1 ... 255, and 128 stands for 0.
constexpr std::int32_t kByteZero = 128;

// outputs = inputs * weights + bias, then perhaps relu, or something added. Either in float32, with
// weights [panels][inputs][kPanel], or in bytes, with weights [panels][inputs / 4][kPanel][4].
struct LinearCall {
  std::int64_t inputs = 0;  // in bytes: filled up to a multiple of 4
  std::int64_t rows = 0;
  const float* weights = nullptr;
  const float* bias = nullptr;  // [panels * kPanel]
  const float* x = nullptr;     // [rows, x_stride]
  std::int64_t x_stride = 0;
  // Of weights in bytes:
  const std::int8_t* byte_weights = nullptr;
  const float* scales = nullptr;          // [panels * kPanel]: what a weight of 1 means
  const std::int32_t* offsets = nullptr;  // [panels * kPanel]: kByteZero * sum of the weights
  const std::uint8_t* byte_x = nullptr;   // [rows, x_stride]
  const float* x_scales = nullptr;        // [rows]

  float* y = nullptr;  // [rows, y_stride]
  std::int64_t y_stride = 0;
  std::int64_t first_output = 0;  // which output the first entry of y is
  bool is_rectified = false;
  const float* added = nullptr;  // [rows, added_stride]; null: nothing
  std::int64_t added_stride = 0;
};

// One row's attention to `count` rows, in all heads. A row to attend to has the keys of all heads and
// then the values of all heads.
struct AttendCall {
  const float* query = nullptr;  // [heads * head]
  const float* rows = nullptr;
  std::int64_t row_stride = 0;
  const std::int32_t* places = nullptr;  // [count]: which rows
  std::int64_t count = 0;
  std::int64_t heads = 0, head = 0;  // heads, and features of each
  float scale = 0.0f;
  bool is_softmax = false;  // or else relu, with the next three
  const float* thresholds = nullptr;  // [heads], subtracted from the scores; null: nothing is
  float power = 1.0f;                 // of the rectified scores
  float length_exponent = 0.0f;       // weights are divided by count to this power
  float* output = nullptr;            // [heads * head]
  float* scratch = nullptr;           // [2 * (count + kPanel)]
};

struct Kernels {
  const char* name;
  // The panels from `begin` up to `end`.
  void (*linear)(const LinearCall&, std::int64_t begin, std::int64_t end);
  // A row in bytes, filled up to `bytes`; returns what a byte of 1 means.
  float (*quantise)(const float* x, std::int64_t size, std::uint8_t* quantised, std::int64_t bytes);
  void (*layer_norm)(const float* x, std::int64_t size, const float* gain, const float* bias,
                     float eps, float* y);
  void (*attend)(const AttendCall&);
  // Add the exponentials of kPanel logits to a sum that is to be multiplied by e^largest, where
  // `largest` is the largest logit so far; returns the largest of these.
  float (*add_exponentials)(const float* logits, float* largest, float* sum);
};

extern const Kernels portable_kernels;
#if defined(RELAKIT_WITH_AVX2)
extern const Kernels avx2_kernels;
#endif
#if defined(RELAKIT_WITH_AVX512)
extern const Kernels avx512_kernels;
#endif

}  // namespace relakit::decode
