// Dense products of packed tiles, which skip nothing. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/unroll.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// How many of the remaining rows to take at once, at most R. One or two left over would leave most of the
// processor idle, so they share with the block before them.
template <int R>
int next_block(int left) {
  if (left <= R) return left;
  return left < R + R / 2 ? (left + 1) / 2 : R;
}

// R x (C vectors) of a * bt + start; bt: [size][kKeyTile]. take(r, x) gets the vectors of row r.
template <int R, int C, class Take>
inline void product_tile(Rows a, const float* bt, std::int64_t size, float start, PrefetchQueue& ahead,
                         const Take& take) {
  const PrefetchQueue::Lines lines = ahead.next(size);
  Vector sum[R][C];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) sum[r][c] = Vector::all(start);
  }
  for (std::int64_t p = 0; p < size; p++) {
    lines.fetch(p);
    Vector b[C];
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) b[c] = Vector::load(bt + p * kKeyTile + c * kWidth);
    RELAKIT_UNROLL
    for (int r = 0; r < R; r++) {
      const Vector x = Vector::all(a[r][p]);
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sum[r][c] = sum[r][c].plus_product(x, b[c]);
    }
  }
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) take(r, sum[r]);
}

// At most R rows of a * bt + start, with all columns up to whole vectors. take.from(j)(i, x) gets the
// vectors of row i from column j on.
template <int R, class Take>
void product_rows(Rows a, const float* bt, std::int64_t size, float start, int rows, int columns,
                  PrefetchQueue& ahead, const Take& take) {
  if constexpr (R > 1) {
    if (rows < R) return product_rows<R - 1>(a, bt, size, start, rows, columns, ahead, take);
  }
  int j = 0;
  const int end = static_cast<int>(round_up(columns, kWidth));
  for (; j + kColumns * kWidth <= end; j += kColumns * kWidth) {
    product_tile<R, kColumns>(a, bt + j, size, start, ahead, take.from(j));
  }
  for (; j + 2 * kWidth <= end; j += 2 * kWidth) {
    product_tile<R, 2>(a, bt + j, size, start, ahead, take.from(j));
  }
  for (; j < end; j += kWidth) product_tile<R, 1>(a, bt + j, size, start, ahead, take.from(j));
}

// Takes products as they are; rows are kKeyTile floats apart.
struct Store {
  float* out;

  Store from(int column) const { return {out + column}; }

  template <int C>
  void operator()(int r, const Vector (&x)[C]) const {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) x[c].store(out + r * kKeyTile + c * kWidth);
  }
};

// out[r] += sum over t of weights[r * across + t * along] * row[t], for R rows of N vectors.
template <int R, int N>
void add_products_part(float* out, std::int64_t out_stride, const float* weights, int across,
                       int along, Rows rows, int count, PrefetchQueue& ahead) {
  const PrefetchQueue::Lines lines = ahead.next(count);
  Vector sum[R][N];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) sum[r][v] = Vector::load(out + r * out_stride + v * kWidth);
  }
  for (int t = 0; t < count; t++) {
    lines.fetch(t);
    Vector x[N];
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) x[v] = Vector::load(rows[t] + v * kWidth);
    RELAKIT_UNROLL
    for (int r = 0; r < R; r++) {
      const Vector w = Vector::all(weights[r * across + t * along]);
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

template <int R, int N>
void add_products_rows(float* out, std::int64_t out_stride, int out_rows, const float* weights,
                       int across, int along, Rows rows, int count, PrefetchQueue& ahead) {
  if constexpr (R > 1) {
    if (out_rows < R) {
      return add_products_rows<R - 1, N>(out, out_stride, out_rows, weights, across, along, rows,
                                         count, ahead);
    }
  }
  add_products_part<R, N>(out, out_stride, weights, across, along, rows, count, ahead);
}

// The same for any number of rows of any size.
void add_products(float* out, std::int64_t out_stride, int out_rows, const float* weights,
                  int across, int along, Rows rows, std::int64_t padded, int count, PrefetchQueue& ahead) {
  constexpr int R = TileShape::sum_rows;
  for (int r = 0, block = 0; r < out_rows; r += block, out += block * out_stride) {
    block = next_block<R>(out_rows - r);
    const float* mine = weights + r * across;
    std::int64_t p = 0;
    for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
      add_products_rows<R, 4>(out + p, out_stride, block, mine, across, along,
                              {rows.data + p, rows.stride}, count, ahead);
    }
    for (; p < padded; p += kWidth) {
      add_products_rows<R, 1>(out + p, out_stride, block, mine, across, along,
                              {rows.data + p, rows.stride}, count, ahead);
    }
  }
}

bool all_finite(Rows rows, int count, std::int64_t padded) {
  // x - x is 0 for finite x and NaN otherwise, and a sum of zeros stays 0. Four sums, as each addition
  // waits for the one before it.
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
