// Products of packed tiles, dense, and sums over lists of positions, sparse. Part of kernels.inc.h.
//
// A list holds positions of rows, and numbers that belong to them are listed beside it. Lists are
// padded to a multiple of kStep with the last position and number 0, so that loops need no remainder.

#include <cstdint>

#include "rela/unroll.h"

namespace relakit::RELAKIT_ISA {
namespace {

// R x (C vectors) of a * bt + start; bt: [size][kKeyTile].
template <int R, int C>
void product_tile(Rows a, const float* bt, std::int64_t size, float start, float* out) {
  Vector sum[R][C];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) sum[r][c] = Vector::all(start);
  }
  for (std::int64_t p = 0; p < size; p++) {
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
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int c = 0; c < C; c++) sum[r][c].store(out + r * kKeyTile + c * kWidth);
  }
}

// R rows of a * bt + start, all columns up to whole vectors; kKeyTile floats from row to row of out.
template <int R>
void product_rows(Rows a, const float* bt, std::int64_t size, float start, int columns, float* out) {
  int c = 0;
  const int end = static_cast<int>(round_up(columns, kWidth));
  for (; c + kColumns * kWidth <= end; c += kColumns * kWidth) {
    product_tile<R, kColumns>(a, bt + c, size, start, out + c);
  }
  for (; c + 2 * kWidth <= end; c += 2 * kWidth) {
    product_tile<R, 2>(a, bt + c, size, start, out + c);
  }
  for (; c < end; c += kWidth) product_tile<R, 1>(a, bt + c, size, start, out + c);
}

// The rows that are left over once blocks of R are done: half as many at a time, and so on.
template <int R>
void product_rest(Rows a, const float* bt, std::int64_t size, float start, int rows, int columns,
                  float* out) {
  if (rows >= R) {
    product_rows<R>(a, bt, size, start, columns, out);
    a = a.from(R);
    out += R * kKeyTile;
    rows -= R;
  }
  if constexpr (R > 1) {
    if (rows > 0) product_rest<R / 2>(a, bt, size, start, rows, columns, out);
  }
}

void products(Rows a, const float* bt, std::int64_t size, float start, int rows, int columns,
              float* out) {
  int r = 0;
  for (; r + kRows <= rows; r += kRows) {
    product_rows<kRows>(a.from(r), bt, size, start, columns, out + r * kKeyTile);
  }
  if (r < rows) {
    product_rest<4>(a.from(r), bt, size, start, rows - r, columns, out + r * kKeyTile);
  }
}

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
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const Vector w = Vector::all(numbers[t + u]);
      const T* x = rows + list[t + u] * stride;
      RELAKIT_UNROLL
      for (int v = 0; v < N; v++) {
        sum[u % 2][v] = sum[u % 2][v].plus_product(w, Vector::load(x + v * kWidth));
      }
    }
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) sum[0][v].plus(sum[1][v]).store(out + v * kWidth);
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

// add_rows for two sums over one list, of N vectors each and from row to row: one walk.
template <int N>
void add_rows_twice(float* out_a, const float* rows_a, const float* numbers_a, float* out_b,
                    const float* rows_b, const float* numbers_b, const std::uint8_t* list,
                    int length) {
  Vector a[N], b[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    a[v] = Vector::load(out_a + v * kWidth);
    b[v] = Vector::load(out_b + v * kWidth);
  }
  for (int t = 0; t < length; t++) {
    const std::int64_t start = list[t] * (N * kWidth);
    const Vector wa = Vector::all(numbers_a[t]), wb = Vector::all(numbers_b[t]);
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) {
      a[v] = a[v].plus_product(wa, Vector::load(rows_a + start + v * kWidth));
      b[v] = b[v].plus_product(wb, Vector::load(rows_b + start + v * kWidth));
    }
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    a[v].store(out_a + v * kWidth);
    b[v].store(out_b + v * kWidth);
  }
}

// out[position] += number * x over the list, for N vectors of a row.
template <int N>
void spread_row_of(float* out, const float* x, const std::uint8_t* list, const float* numbers,
                   int length) {
  Vector mine[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) mine[v] = Vector::load(x + v * kWidth);
  for (int t = 0; t < length; t++) {
    float* to = out + list[t] * (N * kWidth);
    const Vector w = Vector::all(numbers[t]);
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) {
      Vector::load(to + v * kWidth).plus_product(w, mine[v]).store(to + v * kWidth);
    }
  }
}

// out[position] += number * x over the list.
void spread_row(float* out, const float* x, std::int64_t padded, const std::uint8_t* list,
                const float* numbers, int length) {
  if (padded == 4 * kWidth) {
    spread_row_of<4>(out, x, list, numbers, length);
    return;
  }
  for (int t = 0; t < length; t++) {
    float* to = out + list[t] * padded;
    const Vector w = Vector::all(numbers[t]);
    for (std::int64_t p = 0; p < padded; p += kWidth) {
      Vector::load(to + p).plus_product(w, Vector::load(x + p)).store(to + p);
    }
  }
}

// out[r] += sum over t of weights[r * across + t * along] * row[t], for R rows of N vectors.
template <int R, int N>
void add_products_part(float* out, std::int64_t out_stride, const float* weights, int across,
                       int along, Rows rows, int count) {
  Vector sum[R][N];
  RELAKIT_UNROLL
  for (int r = 0; r < R; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) sum[r][v] = Vector::load(out + r * out_stride + v * kWidth);
  }
  for (int t = 0; t < count; t++) {
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
                       int across, int along, Rows rows, int count) {
  int r = 0;
  for (; r + R <= out_rows; r += R) {
    add_products_part<R, N>(out + r * out_stride, out_stride, weights + r * across, across, along,
                            rows, count);
  }
  if constexpr (R > 1) {  // the rest: at most half as many at a time, and so on
    if (r < out_rows) {
      add_products_rows<(R > 4 ? 4 : R / 2), N>(out + r * out_stride, out_stride, out_rows - r,
                                                weights + r * across, across, along, rows, count);
    }
  }
}

// The same for rows of any size: all rows take part, as no list says which.
void add_products(float* out, std::int64_t out_stride, int out_rows, const float* weights,
                  int across, int along, Rows rows, std::int64_t padded, int count) {
  std::int64_t p = 0;
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_products_rows<Vector::sum_rows, 4>(out + p, out_stride, out_rows, weights, across, along,
                            {rows.data + p, rows.stride}, count);
  }
  for (; p < padded; p += kWidth) {
    add_products_rows<Vector::sum_rows, 1>(out + p, out_stride, out_rows, weights, across, along,
                            {rows.data + p, rows.stride}, count);
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
      sums[u] = mine[0].times(Vector::load(y));
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

// For one key of backward: the rectified scores of the listed queries, and the gradients of their
// weights. For rows of N vectors throughout; one walk over the list, as lists are short.
template <int N>
void fill_key_lists(const float* key, const float* value, const float* queries,
                    const float* grad_output, const std::uint8_t* list, int length,
                    float minus_threshold, float* weights, float* gradients) {
  Vector k[N], v[N];
  RELAKIT_UNROLL
  for (int c = 0; c < N; c++) {
    k[c] = Vector::load(key + c * kWidth);
    v[c] = Vector::load(value + c * kWidth);
  }
  for (int t = 0; t < length; t += kStep) {
    Vector scores[kStep], products[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const float* q = queries + list[t + u] * (N * kWidth);
      scores[u] = k[0].times(Vector::load(q));
      RELAKIT_UNROLL
      for (int c = 1; c < N; c++) {
        scores[u] = scores[u].plus_product(k[c], Vector::load(q + c * kWidth));
      }
    }
    // Rounded otherwise than in forward, a score may end just below the threshold.
    store_rectified_sums(scores, minus_threshold, weights + t);
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const float* g = grad_output + list[t + u] * (N * kWidth);
      products[u] = v[0].times(Vector::load(g));
      RELAKIT_UNROLL
      for (int c = 1; c < N; c++) {
        products[u] = products[u].plus_product(v[c], Vector::load(g + c * kWidth));
      }
    }
    store_sums(products, gradients + t);
  }
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
      sums[v % 4] = sums[v % 4].plus(x.plus_product(x, minus_one));
    }
  }
  return sums[0].plus(sums[1]).plus(sums[2].plus(sums[3])).sum() == 0.0f;
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
