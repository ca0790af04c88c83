#pragma once

#include <cstdint>
#include <string>

// The interface of the kernels, which are the inner loops of translation.

namespace relakit::translate {

// Outputs are computed in panels of this many; the last panel is padded.
constexpr std::int64_t kPanel = 64;
// Inputs are quantised to 1 ... 255, and 128 stands for 0.
constexpr std::int32_t kByteZero = 128, kLargestByte = 255;
// Rows of bytes are padded to a multiple of this.
constexpr std::int64_t kByteStep = 8;

// How a set of kernels expects weights: in strips of a few vectors of outputs, which are read from
// end to end. In float32 they are [strips][inputs][strip], in bytes [strips][inputs / 4][strip][4].
struct Layout {
  std::int64_t strip = kPanel;  // outputs; kPanel is a multiple of it
  // Whether products of bytes are added in 16 bits, four out of every eight inputs at a time: 0, 1,
  // 4 and 5, or 2, 3, 6 and 7. Weights must then be small enough for every sum to fit.
  bool adds_in_16_bits = false;

  bool operator==(const Layout& other) const {
    return strip == other.strip && adds_in_16_bits == other.adds_in_16_bits;
  }
};

// y = x * weights + bias, then optionally relu, and then optionally something added. In float32 or
// in bytes.
struct LinearCall {
  std::int64_t inputs = 0;  // in bytes: padded to a multiple of kByteStep
  std::int64_t rows = 0;
  const float* weights = nullptr;
  const float* bias = nullptr;  // [panels * kPanel]
  const float* x = nullptr;     // [rows, x_stride]
  std::int64_t x_stride = 0;
  // For weights in bytes:
  const std::int8_t* byte_weights = nullptr;
  const float* scales = nullptr;          // [panels * kPanel]: the value of a weight of 1
  const std::int32_t* offsets = nullptr;  // [panels * kPanel]: kByteZero * sum of the weights
  const std::uint8_t* byte_x = nullptr;   // [rows, x_stride]
  const float* x_scales = nullptr;        // [rows]

  float* y = nullptr;  // [rows, y_stride]
  std::int64_t y_stride = 0;
  std::int64_t first_output = 0;  // the output that y's first entry belongs to
  bool is_rectified = false;
  const float* added = nullptr;  // [rows, added_stride]; null: nothing
  std::int64_t added_stride = 0;
};

// The attention of one row to `count` rows, in all heads. Those rows hold the keys of all heads,
// then the values of all heads.
struct AttendCall {
  const float* query = nullptr;  // [heads * head]
  const float* rows = nullptr;
  std::int64_t row_stride = 0;
  const std::int32_t* places = nullptr;  // [count]: which rows
  std::int64_t count = 0;
  std::int64_t heads = 0, head = 0;  // number of heads, and features of each
  float scale = 0.0f;
  bool is_softmax = false;  // otherwise relu, with the next three
  const float* thresholds = nullptr;  // [heads], subtracted from the scores; null: none
  float power = 1.0f;                 // the rectified scores are raised to this
  float length_exponent = 0.0f;       // weights are divided by count to this power
  float* output = nullptr;            // [heads * head]
  float* scratch = nullptr;           // [2 * (count + kPanel)]
};

// The kernels for one instruction set.
struct Kernels {
  const char* isa;
  Layout layout;
  // Computes the panels from `begin` up to `end`.
  void (*linear)(const LinearCall&, std::int64_t begin, std::int64_t end);
  // Rounds a row to bytes, padded to `bytes` of them; returns the value of a step of 1.
  float (*quantise)(const float* x, std::int64_t size, std::uint8_t* quantised, std::int64_t bytes);
  void (*layer_norm)(const float* x, std::int64_t size, const float* gain, const float* bias,
                     float eps, float* y);
  void (*attend)(const AttendCall&);
  // Adds the exponentials of kPanel logits to a sum, which is kept divided by e^largest, where
  // `largest` is the largest logit so far. Returns the largest of these kPanel logits.
  float (*add_exponentials)(const float* logits, float* largest, float* sum);
};

// Which of these exist depends on the build.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;
// Also named "neon" and "avx2", for processors with dot products of bytes.
extern const Kernels neon_dotprod_kernels, avx2_vnni_kernels;

// Throws std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::translate
