// Dense products of packed tiles, which skip nothing. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/unroll.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// How many of the remaining rows to take at once, at most R. One or two left over would leave most
// of the processor idle, so a small remainder is split evenly with the block before it.
template <int R>
int next_block(int left) {
  if (left <= R) return left;
  return left < R + R / 2 ? (left + 1) / 2 : R;
}

// How many steps of a product are done for each line of memory that is fetched meanwhile.
constexpr int kStepsPerLine = TileShape::steps_per_line;

// How products add up: one float of each operand at a time. (PairSums takes two bfloat16 numbers.)
struct FloatSums {
  static Vector add(const Vector& sum, const Vector& x, const Vector& y) {
    return sum.plus_product(x, y);
  }
};

// R rows by C vectors of a * bt + start. bt holds columns of a panel with `size` entries each,
// which are whole vectors. take(r, x) gets the vectors of row r.
template <class Sums, int R, int C, class Take>
inline void product_tile(Rows a, const float* bt, std::int64_t size, float start, PrefetchQueue& ahead,
                         const Take& take) {
  static_assert(kWidth % kStepsPerLine == 0, "steps must not have a rest");
  const PrefetchQueue::Lines lines = ahead.next(size / kStepsPerLine);
  Vector sum[R][C];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) sum[r][c] = Vector::all(start);
  }
  // Two pointers and multiples of one stride: one address per row would not fit into registers.
  constexpr int half = (R + 1) / 2;
  const float *upper = a[0], *lower = a[half];
  for (std::int64_t line = 0; line < size / kStepsPerLine; line++) {
    lines.fetch(line);
    RELAKIT_UNROLL
    for (int s = 0; s < kStepsPerLine; s++) {
      Vector b[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) b[c] = Vector::load(bt + s * kPanel + c * kWidth);
      RELAKIT_UNROLL
      for (int r = 0; r < R; r++) {
        const float* row = r < half ? upper + r * a.stride : lower + (r - half) * a.stride;
        const Vector x = Vector::all(row[s]);
        RELAKIT_UNROLL
        for (int c = 0; c < C; c++) sum[r][c] = Sums::add(sum[r][c], x, b[c]);
      }
    }
    upper += kStepsPerLine;
    lower += kStepsPerLine;
    bt += kStepsPerLine * kPanel;
  }
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) take(r, sum[r]);
}

// At most R rows of a * panel + start, with `columns` columns of the panel, rounded up to whole
// vectors. take.at(r, j) takes the vectors from row r and column j on.
template <class Sums, int R, class Take>
void product_rows(Rows a, const float* panel, std::int64_t size, float start, int rows, int columns,
                  PrefetchQueue& ahead, const Take& take) {
  if constexpr (R > 1) {
    if (rows < R) return product_rows<Sums, R - 1>(a, panel, size, start, rows, columns, ahead, take);
  }
  const int end = static_cast<int>(round_up(columns, kWidth));
  if (end == kPanel) return product_tile<Sums, R, kColumns>(a, panel, size, start, ahead, take);
  int j = 0;
  if constexpr (kColumns > 2) {
    for (; j + 2 * kWidth <= end; j += 2 * kWidth) {
      product_tile<Sums, R, 2>(a, panel + j, size, start, ahead, take.at(0, j));
    }
  }
  for (; j < end; j += kWidth) {
    product_tile<Sums, R, 1>(a, panel + j, size, start, ahead, take.at(0, j));
  }
}

// All rows of a * panels + start, where a column of the panels has `padded` entries. columns(r) is
// the number of columns wanted for the rows up to r; it grows with r. A panel and all rows stay in
// the first-level cache.
template <class Sums, class Columns, class Take>
void products(Rows a, int rows, const float* panels, std::int64_t padded, float start,
              const Columns& columns, PrefetchQueue& ahead, const Take& take) {
  const int most = columns(rows - 1);
  for (int j = 0; j < most; j += kPanel) {
    for (int r = 0, block = 0; r < rows; r += block) {
      block = next_block<kRows>(rows - r);
      const int known = static_cast<int>(least(columns(r + block - 1) - j, kPanel));
      product_rows<Sums, kRows>(a.from(r), panels + j * padded, padded, start, block, known, ahead,
                                take.at(r, j));
    }
  }
}

// Stores products unchanged; rows are kScoreRow floats apart.
struct Store {
  float* out;

  Store at(int row, int column) const { return {out + row * kScoreRow + column}; }

  template <int C>
  void operator()(int r, const Vector (&x)[C]) const {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) x[c].store(out + r * kScoreRow + c * kWidth);
  }
};

// A matrix of weights, kScoreRow floats to a row, or its transpose.
template <bool kIsTransposed>
struct Weights {
  static constexpr int across = kIsTransposed ? 1 : kScoreRow, along = kIsTransposed ? kScoreRow : 1;
  const float* data;

  Weights from(int row, int column) const { return {data + row * across + column * along}; }
  float at(int row, int column) const { return data[row * across + column * along]; }
};

// out[r] += sum over t of weights[r][t] * row[t], for R rows of N vectors.
template <int R, int N, class W>
void add_products_part(float* out, std::int64_t out_stride, W weights, Rows rows, int count,
                       PrefetchQueue& ahead) {
  const PrefetchQueue::Lines lines = ahead.next(count / kStepsPerLine);
  Vector sum[R][N];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) sum[r][v] = Vector::load(out + r * out_stride + v * kWidth);
  }
  for (int t = 0; t < count; t++) {
    if (t % kStepsPerLine == 0) lines.fetch(t / kStepsPerLine);
    Vector x[N];
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) x[v] = Vector::load(rows[t] + v * kWidth);
    RELAKIT_UNROLL
    for (int r = 0; r < R; r++) {
      const Vector w = Vector::all(weights.at(r, t));
      RELAKIT_UNROLL
      for (int v = 0; v < N; v++) sum[r][v] = sum[r][v].plus_product(w, x[v]);
    }
  }
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) sum[r][v].store(out + r * out_stride + v * kWidth);
  }
}

template <int R, int N, class W>
void add_products_rows(float* out, std::int64_t out_stride, int out_rows, W weights, Rows rows,
                       int count, PrefetchQueue& ahead) {
  if constexpr (R > 1) {
    if (out_rows < R) {
      return add_products_rows<R - 1, N>(out, out_stride, out_rows, weights, rows, count, ahead);
    }
  }
  add_products_part<R, N>(out, out_stride, weights, rows, count, ahead);
}

// How many rows to add up at a time: as many as stay in the first-level cache meanwhile.
constexpr int kSumStep = 64;

// add_products_part for any number of rows of any size.
template <class W>
void add_products(float* out, std::int64_t out_stride, int out_rows, W weights, Rows rows,
                  std::int64_t padded, int count, PrefetchQueue& ahead) {
  constexpr int R = TileShape::sum_rows, N = TileShape::sum_columns;
  for (int t = 0; t < count; t += kSumStep) {
    const int step = static_cast<int>(least(kSumStep, count - t));
    for (int r = 0, block = 0; r < out_rows; r += block) {
      block = next_block<R>(out_rows - r);
      float* sums = out + r * out_stride;
      const W mine = weights.from(r, t);
      const Rows added = rows.from(t);
      std::int64_t p = 0;
      for (; p + N * kWidth <= padded; p += N * kWidth) {
        add_products_rows<R, N>(sums + p, out_stride, block, mine, {added.data + p, added.stride},
                                step, ahead);
      }
      for (; p < padded; p += kWidth) {
        add_products_rows<R, 1>(sums + p, out_stride, block, mine, {added.data + p, added.stride},
                                step, ahead);
      }
    }
  }
}

bool all_finite(Rows rows, int count, std::int64_t padded) {
  // x - x is 0 for finite x and NaN otherwise, and a sum of zeros stays 0. There are four sums
  // because each addition waits for the one before it.
  Vector sums[4];
  for (auto& sum : sums) sum = Vector::all(0.0f);
  const Vector minus_one = Vector::all(-1.0f);
  for (int i = 0; i < count; i++) {
    for (std::int64_t p = 0, v = 0; p < padded; p += kWidth, v++) {
      const Vector x = Vector::load(rows[i] + p);
      sums[v % 4] = sums[v % 4] + x.plus_product(x, minus_one);
    }
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])).sum() == 0.0f;
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
