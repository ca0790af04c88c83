// Packing: copies rows of a tensor as contiguous float32, padded to whole vectors. Also what it is
// based on: tile sizes and scratch memory. Part of kernels.inc.h.

#include <cstring>

#include "attention/problem.h"
#include "attention/scratch.h"
#include "cpu/bfloat16.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

constexpr int kWidth = Vector::width;
constexpr int kRows = TileShape::rows, kColumns = TileShape::columns;
constexpr int kKeyTile = 128;    // keys in a tile; a position fits into a byte
constexpr int kQueryTile = 64;   // queries in a tile; their bits for a key fit into a word
constexpr int kWords = kKeyTile / 64;
// Columns of transposed rows that are stored together: as many as a product keeps in registers.
constexpr int kPanel = kColumns * kWidth;
// Floats from one row of a tile's scores to the next. With a power of two, the entries of a column
// would compete for a few places in the cache.
constexpr int kScoreRow = kKeyTile + 16;
constexpr int kStep = 4;         // lists are padded to a multiple of this
constexpr int kHead = 64 / kWidth;  // vectors in the usual head of 64 features; it has its own code

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

std::int64_t between(std::int64_t low, std::int64_t n, std::int64_t high) {
  return n < low ? low : n > high ? high : n;
}

// memset that also accepts 0 bytes at a null address.
void set_to_zero(void* data, std::size_t bytes) {
  if (bytes > 0) std::memset(data, 0, bytes);
}

enum class Start { undefined, zero };

// Scratch memory for floats.
class Buffer {
 public:
  explicit Buffer(std::int64_t size, Start start = Start::undefined)
      : bytes_(static_cast<std::size_t>(size) * sizeof(float)),
        data_(static_cast<float*>(take_scratch(bytes_))) {
    if (start == Start::zero) set_to_zero(data_, bytes_);
  }
  ~Buffer() { give_back_scratch(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() { return data_; }
  operator float*() { return data_; }

 private:
  std::size_t bytes_;
  float* data_;
};

template <class T>
const T* row_of(const View& view, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<const T*>(view.data) + batch * view.batch + head * view.head + row * view.row;
}
template <class T>
T* row_of(const Target& target, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<T*>(target.data) + batch * target.batch + head * target.head +
         row * target.row;
}

// out[i][p] = factor * in[i][p], with `padded` floats from one row of out to the next.
template <class T>
void pack_rows(const T* in, std::int64_t stride, int rows, std::int64_t size, std::int64_t padded,
               float factor, float* out) {
  for (int i = 0; i < rows; i++, in += stride, out += padded) {
    for (std::int64_t p = 0; p < size; p++) out[p] = factor * to_float(in[p]);
    for (std::int64_t p = size; p < padded; p++) out[p] = 0.0f;
  }
}

template <class T>
void unpack_rows(const float* in, std::int64_t padded, std::int64_t rows, std::int64_t size,
                 float factor, T* out, std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; i++, in += padded, out += stride) {
    for (std::int64_t p = 0; p < size; p++) from_float(factor * in[p], out[p]);
  }
}

// Rows ready for arithmetic: float32, padded to whole vectors.
struct Rows {
  const float* data;
  std::int64_t stride;

  const float* operator[](std::int64_t i) const { return data + i * stride; }
  Rows from(std::int64_t i) const { return {data + i * stride, stride}; }
};

// Whether rows can be used in place. Rows with gaps are better packed: at a stride such as 2 KiB,
// they would all compete for a few places in the cache.
template <class T>
bool is_packed(std::int64_t stride, std::int64_t size) {
  return sizeof(T) == sizeof(float) && stride == size && size % kWidth == 0;
}

// Rows of a tensor, in place if possible, otherwise packed into a buffer.
template <class T>
Rows packed_rows(const T* in, std::int64_t stride, int rows, std::int64_t size, float* buffer) {
  if (is_packed<T>(stride, size)) return {reinterpret_cast<const float*>(in), stride};
  const std::int64_t padded = round_up(size, kWidth);
  pack_rows(in, stride, rows, size, padded, 1.0f, buffer);
  return {buffer, padded};
}

// Where column j of transposed rows begins in panels [kKeyTile / kPanel][padded][kPanel]. Its entry
// p is p * kPanel floats further on.
float* column_of(float* panels, std::int64_t padded, int j) {
  return panels + j / kPanel * (kPanel * padded) + j % kPanel;
}

// Row j of `in` becomes column j of the panels. Columns from `rows` up to the next whole vector
// become 0.
void transpose(Rows in, std::int64_t padded, int rows, float* panels) {
  constexpr int block = 8;
  static_assert(kWidth % block == 0 && kKeyTile % kPanel == 0, "blocks must not cross a border");
  int j = 0;
  for (; j + block <= rows; j += block) {
    float* out = column_of(panels, padded, j);
    for (std::int64_t p = 0; p < padded; p += block) {
      transpose_8x8(in[j] + p, in.stride, out + p * kPanel, kPanel);
    }
  }
  const int end = static_cast<int>(round_up(rows, kWidth));
  for (; j < end; j++) {
    float* out = column_of(panels, padded, j);
    for (std::int64_t p = 0; p < padded; p++) out[p * kPanel] = j < rows ? in[j][p] : 0.0f;
  }
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
