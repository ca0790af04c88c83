// The kernels, written once over a vector type and compiled once per instruction set. The including
// file has defined Vector and append_positions in the namespace RELAKIT_ISA.
//
// Everything here is local to the file, and no template of the standard library is used: the linker
// would share one copy of it between files, compiled for an instruction set that a machine may lack.
//
// All arithmetic is on packed tiles in scratch memory: float32, rows padded with zeros to a whole
// number of vectors. Packing converts bfloat16, undoes strides, and costs one pass for each tile, while
// the work on a tile is one pass for each of its rows.

#include <cstring>

#include "parallel.h"
#include "rela/bits.h"
#include "rela/problem.h"
#include "rela/random.h"
#include "rela/scratch.h"

namespace relakit::RELAKIT_ISA {
namespace {

constexpr int kWidth = Vector::width;
constexpr int kRows = Vector::rows, kColumns = Vector::columns;
constexpr int kKeyTile = 128;    // keys in a tile; positions fit into a byte
constexpr int kQueryTile = 64;   // queries in a tile; one bit each in a column's word
constexpr int kWords = kKeyTile / 64;
constexpr int kListRoom = kKeyTile + 64;  // append_positions may write 64 bytes at once
constexpr std::int64_t kMostQueriesPerTask = 1024;
// Shares of non-zeros in a tile above which dense work is the faster: for sums of rows, where every
// non-zero costs a few loads, and for dot products, where it costs a reduction of a vector too.
constexpr float kDenseSums = 0.45f, kDenseDots = 0.3f;

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

std::int64_t between(std::int64_t low, std::int64_t n, std::int64_t high) {
  return n < low ? low : n > high ? high : n;
}

enum class Start { undefined, zero };

// Scratch memory for floats.
class Buffer {
 public:
  explicit Buffer(std::int64_t size, Start start = Start::undefined)
      : bytes_(static_cast<std::size_t>(size) * sizeof(float)),
        data_(static_cast<float*>(take_scratch(bytes_))) {
    if (start == Start::zero) std::memset(data_, 0, bytes_);
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

float to_float(float x) { return x; }
float to_float(std::uint16_t x) {  // bfloat16: the upper half of a float32
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

void from_float(float x, float& out) { out = x; }
void from_float(float x, std::uint16_t& out) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (!(x == x)) {
    out = 0x7FC0;
    return;
  }
  bits += 0x7FFF + ((bits >> 16) & 1);  // to nearest, ties to even
  out = static_cast<std::uint16_t>(bits >> 16);
}

template <class T>
const T* row_of(const View& view, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<const T*>(view.data) + batch * view.batch + head * view.head + row * view.row;
}

// Rows to rows: out[i][p] = factor * in[i][p], with `padded` floats from one row of out to the next.
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
                 float factor, T* out) {
  for (std::int64_t i = 0; i < rows; i++, in += padded, out += size) {
    for (std::int64_t p = 0; p < size; p++) from_float(factor * in[p], out[p]);
  }
}

// Packed rows to columns: out[p][j] = in[j][p], kKeyTile floats from one row of out to the next. Rows
// are padded to whole vectors and tiles to whole blocks, so blocks may reach beyond what is asked for;
// columns from `rows` on to the next whole vector become 0.
void transpose(const float* in, std::int64_t padded, int rows, float* out) {
  constexpr int block = 8;
  static_assert(kWidth % block == 0 && kKeyTile % block == 0, "blocks must not cross a border");
  for (int j = 0; j < rows; j += block) {
    for (std::int64_t p = 0; p < padded; p += block) {
      transpose_8x8(in + j * padded + p, padded, out + p * kKeyTile + j, kKeyTile);
    }
  }
  const int end = static_cast<int>(round_up(rows, kWidth));
  for (std::int64_t p = 0; rows < end && p < padded; p++) {
    for (int j = rows; j < end; j++) out[p * kKeyTile + j] = 0.0f;
  }
}

// R x (C vectors) of a * bt + start, a: rows of `padded` floats, bt: [size][kKeyTile].
template <int R, int C>
void product_tile(const float* a, std::int64_t padded, const float* bt, std::int64_t size,
                  float start, float* out) {
  Vector sum[R][C];
  for (int r = 0; r < R; r++) {
    for (int c = 0; c < C; c++) sum[r][c] = Vector::all(start);
  }
  for (std::int64_t p = 0; p < size; p++) {
    Vector b[C];
    for (int c = 0; c < C; c++) b[c] = Vector::load(bt + p * kKeyTile + c * kWidth);
    for (int r = 0; r < R; r++) {
      const Vector x = Vector::all(a[r * padded + p]);
      for (int c = 0; c < C; c++) sum[r][c] = sum[r][c].plus_product(x, b[c]);
    }
  }
  for (int r = 0; r < R; r++) {
    for (int c = 0; c < C; c++) sum[r][c].store(out + r * kKeyTile + c * kWidth);
  }
}

// All columns of kRows rows of a * bt + start.
template <int R>
void product_rows(const float* a, std::int64_t padded, const float* bt, std::int64_t size,
                  float start, int columns, float* out) {
  int c = 0;
  const int end = static_cast<int>(round_up(columns, kWidth));
  for (; c + kColumns * kWidth <= end; c += kColumns * kWidth) {
    product_tile<R, kColumns>(a, padded, bt + c, size, start, out + c);
  }
  for (; c + 2 * kWidth <= end; c += 2 * kWidth) {
    product_tile<R, 2>(a, padded, bt + c, size, start, out + c);
  }
  for (; c < end; c += kWidth) product_tile<R, 1>(a, padded, bt + c, size, start, out + c);
}

void products(const float* a, std::int64_t padded, const float* bt, std::int64_t size, float start,
              int rows, int columns, float* out) {
  int r = 0;
  for (; r + kRows <= rows; r += kRows) {
    product_rows<kRows>(a + r * padded, padded, bt, size, start, columns, out + r * kKeyTile);
  }
  for (; r < rows; r++) {
    product_rows<1>(a + r * padded, padded, bt, size, start, columns, out + r * kKeyTile);
  }
}

// out += sum over the list of weight[position * stride] * row[position], for N vectors of a row.
template <int N>
void add_rows_part(float* out, const float* rows, std::int64_t padded, const std::uint8_t* list,
                   int length, const float* weights, int stride) {
  Vector even[N], odd[N];
  for (int v = 0; v < N; v++) {
    even[v] = Vector::load(out + v * kWidth);
    odd[v] = Vector::all(0.0f);
  }
  int t = 0;
#pragma GCC unroll 2
  for (; t + 2 <= length; t += 2) {
    const int i = list[t], j = list[t + 1];
    const Vector wi = Vector::all(weights[i * stride]), wj = Vector::all(weights[j * stride]);
    const float *x = rows + i * padded, *y = rows + j * padded;
    for (int v = 0; v < N; v++) even[v] = even[v].plus_product(wi, Vector::load(x + v * kWidth));
    for (int v = 0; v < N; v++) odd[v] = odd[v].plus_product(wj, Vector::load(y + v * kWidth));
  }
  if (t < length) {
    const int i = list[t];
    const Vector w = Vector::all(weights[i * stride]);
    const float* x = rows + i * padded;
    for (int v = 0; v < N; v++) even[v] = even[v].plus_product(w, Vector::load(x + v * kWidth));
  }
  for (int v = 0; v < N; v++) even[v].plus(odd[v]).store(out + v * kWidth);
}

void add_rows(float* out, const float* rows, std::int64_t padded, const std::uint8_t* list,
              int length, const float* weights, int stride) {
  if (length == 0) return;
  std::int64_t p = 0;
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_rows_part<4>(out + p, rows + p, padded, list, length, weights, stride);
  }
  for (; p < padded; p += kWidth) {
    add_rows_part<1>(out + p, rows + p, padded, list, length, weights, stride);
  }
}

// add_rows for two sums over the same list, of N vectors each: the list is walked once.
template <int N>
void add_rows_twice(float* out_a, const float* rows_a, const float* weights_a, float* out_b,
                    const float* rows_b, const float* weights_b, const std::uint8_t* list,
                    int length, int stride) {
  Vector a[N], b[N];
  for (int v = 0; v < N; v++) {
    a[v] = Vector::load(out_a + v * kWidth);
    b[v] = Vector::load(out_b + v * kWidth);
  }
  for (int t = 0; t < length; t++) {
    const int i = list[t];
    const Vector wa = Vector::all(weights_a[i * stride]), wb = Vector::all(weights_b[i * stride]);
    const float *x = rows_a + i * N * kWidth, *y = rows_b + i * N * kWidth;
    for (int v = 0; v < N; v++) a[v] = a[v].plus_product(wa, Vector::load(x + v * kWidth));
    for (int v = 0; v < N; v++) b[v] = b[v].plus_product(wb, Vector::load(y + v * kWidth));
  }
  for (int v = 0; v < N; v++) {
    a[v].store(out_a + v * kWidth);
    b[v].store(out_b + v * kWidth);
  }
}

// out[r] += sum over t of weights[r * across + t * along] * row[t], for R rows of N vectors.
template <int R, int N>
void add_products_part(float* out, std::int64_t out_stride, const float* weights, int across,
                       int along, const float* rows, std::int64_t padded, int count) {
  Vector sum[R][N];
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < N; v++) sum[r][v] = Vector::load(out + r * out_stride + v * kWidth);
  }
  for (int t = 0; t < count; t++, rows += padded) {
    Vector x[N];
    for (int v = 0; v < N; v++) x[v] = Vector::load(rows + v * kWidth);
    for (int r = 0; r < R; r++) {
      const Vector w = Vector::all(weights[r * across + t * along]);
      for (int v = 0; v < N; v++) sum[r][v] = sum[r][v].plus_product(w, x[v]);
    }
  }
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < N; v++) sum[r][v].store(out + r * out_stride + v * kWidth);
  }
}

template <int N>
void add_products_columns(float* out, int out_rows, const float* weights, int across, int along,
                          const float* rows, std::int64_t padded, int count) {
  constexpr int R = Vector::sum_rows;
  int r = 0;
  for (; r + R <= out_rows; r += R) {
    add_products_part<R, N>(out + r * padded, padded, weights + r * across, across, along, rows,
                            padded, count);
  }
  for (; r < out_rows; r++) {
    add_products_part<1, N>(out + r * padded, padded, weights + r * across, across, along, rows,
                            padded, count);
  }
}

// The same for rows of any size, as in add_rows but for all positions.
void add_products(float* out, int out_rows, const float* weights, int across, int along,
                  const float* rows, std::int64_t padded, int count) {
  std::int64_t p = 0;
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_products_columns<4>(out + p, out_rows, weights, across, along, rows + p, padded, count);
  }
  for (; p < padded; p += kWidth) {
    add_products_columns<1>(out + p, out_rows, weights, across, along, rows + p, padded, count);
  }
}

// out[position] = x . row[position] for the positions in the list.
void dot_rows(const float* x, const float* rows, std::int64_t padded, const std::uint8_t* list,
              int length, float* out) {
  for (int t = 0; t < length; t++) {
    const float* y = rows + list[t] * padded;
    Vector even = Vector::all(0.0f), odd = Vector::all(0.0f);
    std::int64_t p = 0;
    for (; p + 2 * kWidth <= padded; p += 2 * kWidth) {
      even = even.plus_product(Vector::load(x + p), Vector::load(y + p));
      odd = odd.plus_product(Vector::load(x + p + kWidth), Vector::load(y + p + kWidth));
    }
    if (p < padded) even = even.plus_product(Vector::load(x + p), Vector::load(y + p));
    out[list[t]] = even.plus(odd).sum();
  }
}

bool all_finite(const float* rows, std::int64_t size) {
  // x - x is 0 for finite x and NaN otherwise; a sum of such zeros stays 0.
  Vector sum = Vector::all(0.0f);
  const Vector minus_one = Vector::all(-1.0f);
  for (std::int64_t p = 0; p < size; p += kWidth) {
    const Vector x = Vector::load(rows + p);
    sum = sum.plus(x.plus_product(x, minus_one));
  }
  return sum.sum() == 0.0f;
}

// Which bits of a row of a tile stand for keys that the query may see.
struct Visible {
  std::uint64_t words[kWords];
};

Visible first_keys(std::int64_t count) {
  Visible visible;
  for (int w = 0; w < kWords; w++) {
    const std::int64_t n = between(0, count - 64 * w, 64);
    visible.words[w] = n == 64 ? ~0ull : (1ull << n) - 1;
  }
  return visible;
}

// The scores of a tile of queries and keys, rectified, with a list of the non-zeros of each row.
struct Tile {
  Buffer scores{kQueryTile * kKeyTile};
  std::uint8_t lists[kQueryTile * kListRoom];
  int lengths[kQueryTile];
  std::uint64_t bits[kQueryTile][kWords];

  float* row(int i) { return scores + i * kKeyTile; }
  std::uint8_t* list(int i) { return lists + i * kListRoom; }
};

// Reads a Problem for one pair of batch and head.
class Head {
 public:
  Head(const Problem& problem, std::int64_t batch, std::int64_t head)
      : problem_(problem),
        batch_(batch),
        head_(head),
        threshold_(problem.threshold[head]),
        keep_below_(static_cast<std::uint64_t>((1.0 - problem.dropout) * 4294967296.0)),
        keep_factor_(problem.dropout < 1.0f ? 1.0f / (1.0f - problem.dropout) : 0.0f) {}

  float threshold() const { return threshold_; }

  // Number of keys from 0 on that a query may see by causality.
  std::int64_t causal_end(std::int64_t query) const {
    return problem_.causal ? least(query + 1, problem_.keys) : problem_.keys;
  }

  Visible visible(std::int64_t query, std::int64_t key, int keys) const {
    Visible visible = first_keys(least(causal_end(query) - key, keys));
    const Mask& mask = problem_.mask;
    if (mask.kind != Mask::Kind::boolean) return visible;
    const auto* seen = static_cast<const std::uint8_t*>(mask.data) + offset(query, key);
    if (mask.column == 0) {
      if (!*seen) visible = first_keys(0);
      return visible;
    }
    for (int w = 0; w < kWords; w++) {
      std::uint64_t word = 0;
      const auto end = static_cast<int>(between(0, keys - 64 * w, 64));
      for (int j = 0; j < end; j++) {
        word |= static_cast<std::uint64_t>(seen[(64 * w + j) * mask.column] != 0) << j;
      }
      visible.words[w] &= word;
    }
    return visible;
  }

  void add_bias(std::int64_t query, std::int64_t key, int keys, float* scores) const {
    const Mask& mask = problem_.mask;
    if (mask.kind != Mask::Kind::additive) return;
    const auto* bias = static_cast<const float*>(mask.data) + offset(query, key);
    for (int j = 0; j < keys; j++) scores[j] += bias[j * mask.column];
  }

  // What dropout multiplies the weight of a query and a key with.
  float kept(std::int64_t query, std::int64_t key) const {
    const auto row = static_cast<std::uint64_t>((batch_ * problem_.heads + head_) *
                                                    problem_.queries + query);
    return random_bits(problem_.seed, row, static_cast<std::uint64_t>(key)) < keep_below_
               ? keep_factor_
               : 0.0f;
  }

 private:
  std::int64_t offset(std::int64_t query, std::int64_t key) const {
    const Mask& mask = problem_.mask;
    return batch_ * mask.batch + head_ * mask.head + query * mask.row + key * mask.column;
  }

  const Problem& problem_;
  std::int64_t batch_, head_;
  float threshold_;
  std::uint64_t keep_below_;
  float keep_factor_;
};

// Scores of packed queries and transposed keys; rectified, listed. Returns the number of non-zeros.
int fill_tile(const Head& head, const float* queries, std::int64_t padded, const float* keys_t,
              std::int64_t dim, std::int64_t query, int rows, std::int64_t key, int columns,
              Tile& tile) {
  products(queries, padded, keys_t, dim, -head.threshold(), rows, columns, tile.scores);
  int total = 0;
  for (int i = 0; i < rows; i++) {
    float* scores = tile.row(i);
    head.add_bias(query + i, key, columns, scores);
    const Visible visible = head.visible(query + i, key, columns);
    int length = 0;
    for (int w = 0; w < kWords && 64 * w < columns; w++) {
      std::uint64_t bits = 0;
      for (int v = 0; v < 64 / kWidth && 64 * w + v * kWidth < columns; v++) {
        const Vector x = Vector::load(scores + 64 * w + v * kWidth);
        bits |= static_cast<std::uint64_t>(x.not_below_or_zero()) << (v * kWidth);
      }
      bits &= visible.words[w];
      tile.bits[i][w] = bits;
      length = append_positions(bits, 64 * w, tile.list(i), length);
    }
    for (int w = (columns + 63) / 64; w < kWords; w++) tile.bits[i][w] = 0;
    tile.lengths[i] = length;
    total += length;
  }
  return total;
}

bool is_dense(int nonzeros, int rows, int columns, float share) {
  return static_cast<float>(nonzeros) > share * static_cast<float>(rows * columns);
}

// Set to 0 what is not in the lists.
void clear_unlisted(const Tile& tile, int rows, int columns, float* matrix) {
  for (int i = 0; i < rows; i++, matrix += kKeyTile) {
    for (int j = 0; j < columns; j += kWidth) {
      const auto bits = static_cast<std::uint32_t>(tile.bits[i][j / 64] >> (j % 64));
      Vector::load(matrix + j).where(bits).store(matrix + j);
    }
  }
}

template <class T>
void forward_task(const Problem& p, const ForwardResult& result, std::int64_t batch,
                  std::int64_t head_index, std::int64_t begin, std::int64_t end) {
  const Head head(p, batch, head_index);
  const std::int64_t key_head = head_index / (p.heads / p.key_heads);
  const std::int64_t dim = round_up(p.dim, kWidth), value_dim = round_up(p.value_dim, kWidth);
  const std::int64_t rows = end - begin;
  Buffer queries(rows * dim), output(rows * value_dim, Start::zero);
  Buffer keys(kKeyTile * dim), keys_t(dim * kKeyTile), values(kKeyTile * value_dim);
  Tile tile;
  pack_rows(row_of<T>(p.query, batch, head_index, begin), p.query.row, static_cast<int>(rows),
            p.dim, dim, p.scale, queries);
  const std::int64_t row_index = (batch * p.heads + head_index) * p.queries + begin;

  for (std::int64_t key = 0; key < head.causal_end(end - 1); key += kKeyTile) {
    const int columns = static_cast<int>(least(kKeyTile, p.keys - key));
    pack_rows(row_of<T>(p.key, batch, key_head, key), p.key.row, columns, p.dim, dim, 1.0f, keys);
    transpose(keys, dim, columns, keys_t);
    pack_rows(row_of<T>(p.value, batch, key_head, key), p.value.row, columns, p.value_dim,
              value_dim, 1.0f, values);
    const bool is_finite = all_finite(values, columns * value_dim);
    for (std::int64_t q = 0; q < rows; q += kQueryTile) {
      const int tile_rows = static_cast<int>(least(kQueryTile, rows - q));
      if (head.causal_end(begin + q + tile_rows - 1) <= key && is_finite) continue;
      const int total = fill_tile(head, queries + q * dim, dim, keys_t, p.dim, begin + q,
                                  tile_rows, key, columns, tile);
      if (total == 0 && is_finite) continue;
      for (int i = 0; i < tile_rows; i++) {
        float* weights = tile.row(i);
        const std::uint8_t* list = tile.list(i);
        const int length = tile.lengths[i];
        if (result.nonzeros != nullptr) result.nonzeros[row_index + q + i] += length;
        if (p.power == 2) {
          for (int t = 0; t < length; t++) weights[list[t]] *= weights[list[t]];
        }
        if (p.dropout > 0.0f) {
          for (int t = 0; t < length; t++) {
            weights[list[t]] *= head.kept(begin + q + i, key + list[t]);
          }
        }
        if (result.weights != nullptr) {
          float* out = result.weights + (row_index + q + i) * p.keys + key;
          for (int t = 0; t < length; t++) out[list[t]] = weights[list[t]];
        }
      }
      // Values that are not finite make NaN of a zero weight, as in the plain formula.
      if (!is_finite || is_dense(total, tile_rows, columns, kDenseSums)) {
        clear_unlisted(tile, tile_rows, columns, tile.scores);
        add_products(output + q * value_dim, tile_rows, tile.scores, kKeyTile, 1, values,
                     value_dim, columns);
      } else {
        for (int i = 0; i < tile_rows; i++) {
          add_rows(output + (q + i) * value_dim, values, value_dim, tile.list(i), tile.lengths[i],
                   tile.row(i), 1);
        }
      }
    }
  }
  unpack_rows(output.data(), value_dim, rows, p.value_dim, 1.0f,
              static_cast<T*>(result.output) + row_index * p.value_dim);
}

// The gradients of one key head: those of all query heads that share it, one after the other.
template <class T>
class BackwardTask {
 public:
  BackwardTask(const Problem& p, const BackwardResult& result, std::int64_t batch,
               std::int64_t key_head)
      : p_(p), result_(result), batch_(batch), key_head_(key_head) {}

  void run() {
    const std::int64_t group = p_.heads / p_.key_heads;
    for (std::int64_t h = key_head_ * group; h < (key_head_ + 1) * group; h++) run_head(h);
    const std::int64_t row = (batch_ * p_.key_heads + key_head_) * p_.keys;
    unpack_rows(grad_keys_.data(), dim_, p_.keys, p_.dim, 1.0f,
                static_cast<T*>(result_.grad_key) + row * p_.dim);
    unpack_rows(grad_values_.data(), value_dim_, p_.keys, p_.value_dim, 1.0f,
                static_cast<T*>(result_.grad_value) + row * p_.value_dim);
  }

 private:
  bool is_head_finite(const View& view, std::int64_t head, std::int64_t rows, std::int64_t size) {
    const std::int64_t padded = round_up(size, kWidth);
    Buffer packed(kQueryTile * padded);
    for (std::int64_t i = 0; i < rows; i += kQueryTile) {
      const int count = static_cast<int>(least(kQueryTile, rows - i));
      pack_rows(row_of<T>(view, batch_, head, i), view.row, count, size, padded, 1.0f, packed);
      if (!all_finite(packed, count * padded)) return false;
    }
    return true;
  }

  void run_head(std::int64_t head_index) {
    const Head head(p_, batch_, head_index);
    // What is not finite makes NaN of a zero, as in the plain formula, so nothing may be skipped.
    const bool is_finite = is_head_finite(p_.query, head_index, p_.queries, p_.dim) &&
                           is_head_finite(p_.key, key_head_, p_.keys, p_.dim) &&
                           is_head_finite(p_.value, key_head_, p_.keys, p_.value_dim) &&
                           is_head_finite(result_.grad_output, head_index, p_.queries, p_.value_dim);
    Buffer grad_queries(p_.queries * dim_, Start::zero);
    double grad_threshold = 0.0;
    for (std::int64_t key = 0; key < p_.keys; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, p_.keys - key));
      pack_rows(row_of<T>(p_.key, batch_, key_head_, key), p_.key.row, columns, p_.dim, dim_, 1.0f,
                keys_);
      transpose(keys_, dim_, columns, keys_t_);
      pack_rows(row_of<T>(p_.value, batch_, key_head_, key), p_.value.row, columns, p_.value_dim,
                value_dim_, 1.0f, values_);
      has_values_t_ = false;
      const std::int64_t first = p_.causal && is_finite ? key / kQueryTile * kQueryTile : 0;
      for (std::int64_t query = first; query < p_.queries; query += kQueryTile) {
        const int rows = static_cast<int>(least(kQueryTile, p_.queries - query));
        pack_rows(row_of<T>(p_.query, batch_, head_index, query), p_.query.row, rows, p_.dim, dim_,
                  p_.scale, queries_);
        const int total = fill_tile(head, queries_, dim_, keys_t_, p_.dim, query, rows, key,
                                    columns, tile_);
        if (total == 0 && is_finite) continue;
        pack_rows(row_of<T>(result_.grad_output, batch_, head_index, query),
                  result_.grad_output.row, rows, p_.value_dim, value_dim_, 1.0f, grad_output_);
        const bool dense_dots = !is_finite || is_dense(total, rows, columns, kDenseDots);
        grad_threshold += fill_gradients(head, query, rows, key, columns, dense_dots);
        if (!is_finite || is_dense(total, rows, columns, kDenseSums)) {
          add_dense(grad_queries + query * dim_, rows, key, columns);
        } else {
          add_sparse(grad_queries + query * dim_, rows, key, columns);
        }
      }
    }
    const std::int64_t row = (batch_ * p_.heads + head_index) * p_.queries;
    unpack_rows(grad_queries.data(), dim_, p_.queries, p_.dim, p_.scale,
                static_cast<T*>(result_.grad_query) + row * p_.dim);
    if (result_.grad_threshold != nullptr) {
      result_.grad_threshold[batch_ * p_.heads + head_index] = static_cast<float>(-grad_threshold);
    }
  }

  // gradients_: of the scores. tile_.scores: from rectified scores to weights, as forward used them.
  // Returns the sum of the gradients.
  double fill_gradients(const Head& head, std::int64_t query, int rows, std::int64_t key,
                        int columns, bool dense) {
    if (dense) {
      if (!has_values_t_) transpose(values_, value_dim_, columns, values_t_);
      has_values_t_ = true;
      products(grad_output_, value_dim_, values_t_, p_.value_dim, 0.0f, rows, columns, gradients_);
    } else {
      for (int i = 0; i < rows; i++) {
        dot_rows(grad_output_ + i * value_dim_, values_, value_dim_, tile_.list(i),
                 tile_.lengths[i], gradients_ + i * kKeyTile);
      }
    }
    double total = 0.0;
    for (int i = 0; i < rows; i++) {
      float *weights = tile_.row(i), *gradients = gradients_ + i * kKeyTile;
      const std::uint8_t* list = tile_.list(i);
      const int length = tile_.lengths[i];
      if (p_.power == 2) {
        for (int t = 0; t < length; t++) {
          const int j = list[t];
          gradients[j] *= 2.0f * weights[j];
          weights[j] *= weights[j];
        }
      }
      if (p_.dropout > 0.0f) {
        for (int t = 0; t < length; t++) {
          const int j = list[t];
          const float kept = head.kept(query + i, key + j);
          gradients[j] *= kept;
          weights[j] *= kept;
        }
      }
      total += sum_of(gradients, list, length);
    }
    return total;
  }

  static float sum_of(const float* numbers, const std::uint8_t* list, int length) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};  // four at a time: an addition waits for the last one
    int t = 0;
    for (; t + 4 <= length; t += 4) {
      for (int u = 0; u < 4; u++) sum[u] += numbers[list[t + u]];
    }
    for (; t < length; t++) sum[0] += numbers[list[t]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  void add_dense(float* grad_queries, int rows, std::int64_t key, int columns) {
    clear_unlisted(tile_, rows, columns, tile_.scores);
    clear_unlisted(tile_, rows, columns, gradients_);
    add_products(grad_queries, rows, gradients_, kKeyTile, 1, keys_, dim_, columns);
    add_products(grad_values_ + key * value_dim_, columns, tile_.scores, 1, kKeyTile, grad_output_,
                 value_dim_, rows);
    add_products(grad_keys_ + key * dim_, columns, gradients_, 1, kKeyTile, queries_, dim_, rows);
  }

  void add_sparse(float* grad_queries, int rows, std::int64_t key, int columns) {
    for (int i = 0; i < rows; i++) {
      add_rows(grad_queries + i * dim_, keys_, dim_, tile_.list(i), tile_.lengths[i],
               gradients_ + i * kKeyTile, 1);
    }
    add_columns(rows, key, columns);
  }

  // Keys and values: column by column, so that a column's sums stay in registers.
  void add_columns(int rows, std::int64_t key, int columns) {
    std::uint8_t list[kQueryTile + 64];
    for (int w = 0; 64 * w < columns; w++) {
      std::uint64_t words[64];
      for (int i = 0; i < 64; i++) words[i] = i < rows ? tile_.bits[i][w] : 0;
      transpose_bits(words);
      for (int j = 64 * w; j < least(64 * (w + 1), columns); j++) {
        if (words[j - 64 * w] == 0) continue;
        const int length = append_positions(words[j - 64 * w], 0, list, 0);
        if (dim_ == 4 * kWidth && value_dim_ == 4 * kWidth) {  // a head of the usual 64 features
          add_rows_twice<4>(grad_values_ + (key + j) * value_dim_, grad_output_, tile_.scores + j,
                            grad_keys_ + (key + j) * dim_, queries_, gradients_ + j, list, length,
                            kKeyTile);
          continue;
        }
        add_rows(grad_values_ + (key + j) * value_dim_, grad_output_, value_dim_, list, length,
                 tile_.scores + j, kKeyTile);
        add_rows(grad_keys_ + (key + j) * dim_, queries_, dim_, list, length, gradients_ + j,
                 kKeyTile);
      }
    }
  }

  const Problem& p_;
  const BackwardResult& result_;
  const std::int64_t batch_, key_head_;
  const std::int64_t dim_ = round_up(p_.dim, kWidth), value_dim_ = round_up(p_.value_dim, kWidth);
  Buffer grad_keys_{p_.keys * dim_, Start::zero};
  Buffer grad_values_{p_.keys * value_dim_, Start::zero};
  Buffer keys_{kKeyTile * dim_}, keys_t_{dim_ * kKeyTile};
  Buffer values_{kKeyTile * value_dim_}, values_t_{value_dim_ * kKeyTile};
  Buffer queries_{kQueryTile * dim_}, grad_output_{kQueryTile * value_dim_};
  Buffer gradients_{kQueryTile * kKeyTile};
  bool has_values_t_ = false;
  Tile tile_;
};

template <class T>
void forward_all(const Problem& p, const ForwardResult& result, int threads) {
  if (p.queries == 0) return;
  // Large blocks of queries pack the keys less often; small ones keep all threads busy. A row's
  // result does not depend on its block.
  const std::int64_t heads = p.batch * p.heads;
  const std::int64_t fair = round_up((p.queries * heads + 4 * threads - 1) / (4 * threads), kQueryTile);
  const std::int64_t size = between(kQueryTile, fair, kMostQueriesPerTask);
  const std::int64_t blocks = (p.queries + size - 1) / size;
  struct Work {
    const Problem& p;
    const ForwardResult& result;
    std::int64_t size, blocks;
  } work{p, result, size, blocks};
  run_parallel(
      heads * blocks, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t begin = task % w.blocks * w.size, pair = task / w.blocks;
        forward_task<T>(w.p, w.result, pair / w.p.heads, pair % w.p.heads, begin,
                        least(begin + w.size, w.p.queries));
      },
      &work);
}

template <class T>
void backward_all(const Problem& p, const BackwardResult& result, int threads) {
  struct Work {
    const Problem& p;
    const BackwardResult& result;
  } work{p, result};
  run_parallel(
      p.batch * p.key_heads, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        BackwardTask<T>(w.p, w.result, task / w.p.key_heads, task % w.p.key_heads).run();
      },
      &work);
}

void forward(const Problem& p, const ForwardResult& result, int threads) {
  if (p.dtype == DType::bf16) {
    forward_all<std::uint16_t>(p, result, threads);
  } else {
    forward_all<float>(p, result, threads);
  }
}

void backward(const Problem& p, const BackwardResult& result, int threads) {
  if (p.dtype == DType::bf16) {
    backward_all<std::uint16_t>(p, result, threads);
  } else {
    backward_all<float>(p, result, threads);
  }
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
