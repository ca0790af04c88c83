// Products of packed tiles, dense, and sums over lists of positions, sparse. Part of kernels.inc.h.

#include <cstdint>

namespace relakit::RELAKIT_ISA {
namespace {

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

}  // namespace
}  // namespace relakit::RELAKIT_ISA
