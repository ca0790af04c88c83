// Products of packed tiles, dense, and sums over lists of positions, sparse. Part of kernels.inc.h.
//
// A list holds positions of rows, and numbers that belong to them are listed beside it. Lists are
// padded to a multiple of kStep with the last position and number 0, so that loops need no remainder.

#include <cstdint>

#include "cpu/unroll.h"

namespace relakit::RELAKIT_ISA {
namespace {

// How many of the rows that are left to take at once, with R at most: a rest of one or two would leave
// most of the processor idle, so it shares with the block before it.
template <int R>
int next_block(int left) {
  if (left <= R) return left;
  return left < R + R / 2 ? (left + 1) / 2 : R;
}

// R x (C vectors) of a * bt + start; bt: [size][kKeyTile]. take(r, x) gets the vectors of row r.
template <int R, int C, class Take>
inline void product_tile(Rows a, const float* bt, std::int64_t size, float start, Ahead& ahead,
                         const Take& take) {
  const Ahead::Lines lines = ahead.next(size);
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

// Rows (R at most) of a * bt + start, all columns up to whole vectors. take.from(j)(i, x) gets the
// vectors of row i from column j on.
template <int R, class Take>
void product_rows(Rows a, const float* bt, std::int64_t size, float start, int rows, int columns,
                  Ahead& ahead, const Take& take) {
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

// Takes products as they are, kKeyTile floats from row to row.
struct Store {
  float* out;

  Store from(int column) const { return {out + column}; }

  template <int C>
  void operator()(int r, const Vector (&x)[C]) const {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) x[c].store(out + r * kKeyTile + c * kWidth);
  }
};

// Pad a list, and the numbers beside one. Both need room for kStep more.
void pad_list(std::uint8_t* list, int length) {
  std::memset(list + length, length > 0 ? list[length - 1] : 0, kStep);
}
void pad_numbers(float* numbers, int length) {
  std::memset(numbers + length, 0, kStep * sizeof(float));
}

// out += sum over the list of number * row[position], for N vectors of a row.
template <int N, class T>
void add_rows_part(float* out, const T* rows, std::int64_t stride, const std::uint8_t* list,
                   const float* numbers, int length) {
  Vector sum[2][N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    sum[0][v] = Vector::load(out + v * kWidth);
    sum[1][v] = Vector::all(0.0f);
  }
  for (int t = 0; t < length; t += kStep) {
    Vector w[kStep];
    load_each(numbers + t, w);
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const T* x = rows + list[t + u] * stride;
      RELAKIT_UNROLL
      for (int v = 0; v < N; v++) {
        sum[u % 2][v] = sum[u % 2][v].plus_product(w[u], Vector::load(x + v * kWidth));
      }
    }
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) (sum[0][v] + sum[1][v]).store(out + v * kWidth);
}

template <class T>
inline void add_rows(float* out, const T* rows, std::int64_t stride, std::int64_t padded,
              const std::uint8_t* list, const float* numbers, int length) {
  if (length == 0) return;
  if (padded == 4 * kWidth && stride == padded) {  // a head of the usual 64 features
    add_rows_part<4>(out, rows, 4 * kWidth, list, numbers, length);
    return;
  }
  std::int64_t p = 0;
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_rows_part<4>(out + p, rows + p, stride, list, numbers, length);
  }
  for (; p < padded; p += kWidth) {
    add_rows_part<1>(out + p, rows + p, stride, list, numbers, length);
  }
}

// out += sum over the set bits of number * row, for N vectors of a row; numbers are two floats apart.
template <int N>
void add_chosen_part(float* out, Rows rows, std::uint64_t bits, const float* numbers) {
  Vector sum[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) sum[v] = Vector::load(out + v * kWidth);
  for (; bits != 0; bits &= bits - 1) {
    const int i = lowest_bit(bits);
    const Vector w = Vector::all(numbers[2 * i]);
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) sum[v] = sum[v].plus_product(w, Vector::load(rows[i] + v * kWidth));
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) sum[v].store(out + v * kWidth);
}

// The same for rows of any size.
void add_chosen_rows(float* out, Rows rows, std::int64_t padded, std::uint64_t bits,
                     const float* numbers) {
  std::int64_t p = 0;
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_chosen_part<4>(out + p, {rows.data + p, rows.stride}, bits, numbers);
  }
  for (; p < padded; p += kWidth) {
    add_chosen_part<1>(out + p, {rows.data + p, rows.stride}, bits, numbers);
  }
}

// add_chosen_part for both numbers of the pairs: one walk. N vectors from row to row.
template <int N>
void add_chosen_pairs(float* out_a, const float* rows_a, float* out_b, const float* rows_b,
                      std::uint64_t bits, const float* pairs) {
  Vector a[N], b[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    a[v] = Vector::load(out_a + v * kWidth);
    b[v] = Vector::load(out_b + v * kWidth);
  }
  for (; bits != 0; bits &= bits - 1) {
    const std::int64_t i = lowest_bit(bits);
    Vector wa, wb;
    load_pair(pairs + 2 * i, wa, wb);
    const float *x = rows_a + i * (N * kWidth), *y = rows_b + i * (N * kWidth);
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) {
      a[v] = a[v].plus_product(wa, Vector::load(x + v * kWidth));
      b[v] = b[v].plus_product(wb, Vector::load(y + v * kWidth));
    }
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    a[v].store(out_a + v * kWidth);
    b[v].store(out_b + v * kWidth);
  }
}

// out[r] += sum over t of weights[r * across + t * along] * row[t], for R rows of N vectors.
template <int R, int N>
void add_products_part(float* out, std::int64_t out_stride, const float* weights, int across,
                       int along, Rows rows, int count, Ahead& ahead) {
  const Ahead::Lines lines = ahead.next(count);
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
                       int across, int along, Rows rows, int count, Ahead& ahead) {
  if constexpr (R > 1) {
    if (out_rows < R) {
      return add_products_rows<R - 1, N>(out, out_stride, out_rows, weights, across, along, rows,
                                         count, ahead);
    }
  }
  add_products_part<R, N>(out, out_stride, weights, across, along, rows, count, ahead);
}

// The same for any number of rows of any size: all rows take part, as no list says which.
void add_products(float* out, std::int64_t out_stride, int out_rows, const float* weights,
                  int across, int along, Rows rows, std::int64_t padded, int count, Ahead& ahead) {
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

// out[t] = x . row[list[t]], for a padded list; N vectors to a row, and from row to row.
template <int N>
void dot_rows_of(const float* x, const float* rows, const std::uint8_t* list, int length,
                 float* out) {
  Vector mine[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) mine[v] = Vector::load(x + v * kWidth);
  for (int t = 0; t < length; t += kStep) {
    Vector sums[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const float* y = rows + list[t + u] * (N * kWidth);
      sums[u] = mine[0] * Vector::load(y);
      RELAKIT_UNROLL
      for (int v = 1; v < N; v++) {
        sums[u] = sums[u].plus_product(mine[v], Vector::load(y + v * kWidth));
      }
    }
    store_sums(sums, out + t);
  }
}

void dot_rows(const float* x, Rows rows, std::int64_t padded, const std::uint8_t* list, int length,
              float* out) {
  if (padded == 4 * kWidth && rows.stride == padded) {  // a head of the usual 64 features
    dot_rows_of<4>(x, rows.data, list, length, out);
    return;
  }
  for (int t = 0; t < length; t += kStep) {
    Vector sums[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const float* y = rows[list[t + u]];
      sums[u] = Vector::all(0.0f);
      for (std::int64_t p = 0; p < padded; p += kWidth) {
        sums[u] = sums[u].plus_product(Vector::load(x + p), Vector::load(y + p));
      }
    }
    store_sums(sums, out + t);
  }
}

// The rectified scores of one query with the listed keys, for rows of N vectors; see score_rows.
template <int N>
void score_rows_of(const float* query, const float* keys, const std::uint8_t* list, int length,
                   float minus_threshold, float* weights) {
  Vector mine[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) mine[v] = Vector::load(query + v * kWidth);
  for (int t = 0; t < length; t += kStep) {
    Vector scores[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const float* y = keys + list[t + u] * (N * kWidth);
      scores[u] = mine[0] * Vector::load(y);
      RELAKIT_UNROLL
      for (int v = 1; v < N; v++) {
        scores[u] = scores[u].plus_product(mine[v], Vector::load(y + v * kWidth));
      }
    }
    store_rectified_sums(scores, minus_threshold, weights + t);
  }
}

// Listed scores: minus the threshold, rectified.
void rectify_list(float* scores, int length, float minus_threshold) {
  const Vector shift = Vector::all(minus_threshold);
  for (int t = 0; t < length; t += kWidth) {
    (Vector::load(scores + t) + shift).rectified().store(scores + t);
  }
}

// The rectified scores of one query with the listed keys, padded.
void score_rows(const float* query, Rows keys, std::int64_t padded, const std::uint8_t* list,
                int length, float minus_threshold, float* weights) {
  if (padded == 4 * kWidth && keys.stride == padded) {
    score_rows_of<4>(query, keys.data, list, length, minus_threshold, weights);
  } else {
    dot_rows(query, keys, padded, list, length, weights);
    rectify_list(weights, length, minus_threshold);
  }
  pad_numbers(weights, length);
}

bool all_finite(Rows rows, int count, std::int64_t padded) {
  // x - x is 0 for finite x and NaN otherwise; a sum of such zeros stays 0. Four sums, as an addition
  // waits for the one before.
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
}  // namespace relakit::RELAKIT_ISA
