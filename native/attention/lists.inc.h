// Sums and dot products along lists of positions, which skip all rows that are not listed. Part of
// kernels.inc.h.
//
// A list holds positions of rows; an array beside it holds the numbers that belong to them. Lists
// are padded to a multiple of kStep with the last position, so that dot products have no remainder.

#include <cstdint>
#include <cstring>

#include "cpu/bits.h"
#include "cpu/unroll.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// The list needs room for kStep more positions.
void pad_list(std::uint8_t* list, int length) {
  std::memset(list + length, length > 0 ? list[length - 1] : 0, kStep);
}

// out += sum over the list of number * row[position], for N vectors of a row.
template <int N, class T>
void add_rows_part(float* out, const T* rows, std::int64_t stride, const std::uint8_t* list,
                   const float* numbers, int length) {
  // Each addition waits for the one before it; eight independent ones keep a processor busy.
  constexpr int sets = N < 8 ? 2 : 1;
  Vector sum[sets][N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    sum[sets - 1][v] = Vector::all(0.0f);
    sum[0][v] = Vector::load(out + v * kWidth);
  }
  const auto add = [&](Vector number, int t, int set) {
    const T* x = rows + list[t] * stride;
    RELAKIT_UNROLL
    for (int v = 0; v < N; v++) {
      sum[set][v] = sum[set][v].plus_product(number, Vector::load(x + v * kWidth));
    }
  };
  int t = 0;
  for (; t + kStep <= length; t += kStep) {
    Vector w[kStep];
    load_each(numbers + t, w);
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) add(w[u], t + u, u % sets);
  }
  // Add the rest one by one. Numbers are not padded with zeros, as 0 times an infinite row is NaN.
  RELAKIT_UNROLL
  for (int u = 0; u < kStep - 1; u++) {
    if (t + u < length) add(Vector::all(numbers[t + u]), t + u, u % sets);
  }
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) {
    (sets == 1 ? sum[0][v] : sum[0][v] + sum[sets - 1][v]).store(out + v * kWidth);
  }
}

template <class T>
inline void add_rows(float* out, const T* rows, std::int64_t stride, std::int64_t padded,
              const std::uint8_t* list, const float* numbers, int length) {
  if (length == 0) return;
  if (padded == kHead * kWidth && stride == padded) {
    add_rows_part<kHead>(out, rows, kHead * kWidth, list, numbers, length);
    return;
  }
  std::int64_t p = 0;
  for (; p + kHead * kWidth <= padded; p += kHead * kWidth) {
    add_rows_part<kHead>(out + p, rows + p, stride, list, numbers, length);
  }
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_rows_part<4>(out + p, rows + p, stride, list, numbers, length);
  }
  for (; p < padded; p += kWidth) {
    add_rows_part<1>(out + p, rows + p, stride, list, numbers, length);
  }
}

// out += sum over the set bits of number * row, for N vectors of a row. Numbers are two floats
// apart.
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
  for (; p + kHead * kWidth <= padded; p += kHead * kWidth) {
    add_chosen_part<kHead>(out + p, {rows.data + p, rows.stride}, bits, numbers);
  }
  for (; p + 4 * kWidth <= padded; p += 4 * kWidth) {
    add_chosen_part<4>(out + p, {rows.data + p, rows.stride}, bits, numbers);
  }
  for (; p < padded; p += kWidth) {
    add_chosen_part<1>(out + p, {rows.data + p, rows.stride}, bits, numbers);
  }
}

// add_chosen_part for both numbers of each pair, in one pass if there are enough registers. Rows
// are N vectors long.
template <int N>
void add_chosen_pairs(float* out_a, const float* rows_a, float* out_b, const float* rows_b,
                      std::uint64_t bits, const float* pairs) {
  if constexpr (N > 4) {
    add_chosen_part<N>(out_a, {rows_a, N * kWidth}, bits, pairs);
    add_chosen_part<N>(out_b, {rows_b, N * kWidth}, bits, pairs + 1);
    return;
  }
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

// out[t] = x . row[list[t]] for a padded list, for rows of N vectors without gaps.
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
  if (padded == kHead * kWidth && rows.stride == padded) {
    return dot_rows_of<kHead>(x, rows.data, list, length, out);
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

// score_rows for rows of N vectors without gaps.
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

// Subtract the threshold from listed scores, and rectify them.
void rectify_list(float* scores, int length, float minus_threshold) {
  const Vector shift = Vector::all(minus_threshold);
  for (int t = 0; t < length; t += kWidth) {
    (Vector::load(scores + t) + shift).rectified().store(scores + t);
  }
}

// The rectified scores of one query with the listed keys.
void score_rows(const float* query, Rows keys, std::int64_t padded, const std::uint8_t* list,
                int length, float minus_threshold, float* weights) {
  if (padded == kHead * kWidth && keys.stride == padded) {
    score_rows_of<kHead>(query, keys.data, list, length, minus_threshold, weights);
  } else {
    dot_rows(query, keys, padded, list, length, weights);
    rectify_list(weights, length, minus_threshold);
  }
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
