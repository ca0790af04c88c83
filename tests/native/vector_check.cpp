// Each member of a vector type against what vector_portable.h says of it. Compiled once per instruction
// set, with RELAKIT_ISA and RELAKIT_VECTOR defined; so no template of the standard library is used here.

#include RELAKIT_VECTOR

#include <math.h>

#include "cpu/bfloat16.h"

namespace relakit::check {

void expect(bool holds, const char* what);

namespace RELAKIT_ISA {
namespace {

using namespace relakit::RELAKIT_ISA;

constexpr int kWidth = Vector::width;
constexpr float kInf = HUGE_VALF, kNan = NAN;
// Longer than two vectors, so that each number meets others at each place.
constexpr int kCount = 41;
const float kNumbers[kCount] = {
    1.0f,    -1.0f,   0.0f,    -0.0f,    kInf,        -kInf,        kNan,     2.5f,     1e-40f,
    -1e-40f, 3e38f,   -3e38f,  0.1f,     -0.1f,       1.00390625f,  1.01171875f, -7.0f, 123456.0f,
    kNan,    -kNan,   1e-20f,  -1e-20f,  0.33333334f, -0.33333334f, 65280.0f, 3.4e38f,  kInf,
    -2.0f,   4.0f,    -8.0f,   16.0f,    -32.0f,      64.0f,        -128.0f,  256.0f,   0.5f,
    -0.25f,  0.125f,  -3.0f,   9.0f,     -27.0f};

bool same(float x, float y) { return x == y || (x != x && y != y); }

// The entries of x are f(i).
template <class F>
bool is(const Vector& x, const F& f) {
  float entries[kWidth];
  x.store(entries);
  for (int i = 0; i < kWidth; i++) {
    if (!same(entries[i], f(i))) return false;
  }
  return true;
}

float rounded(float x) { return bfloat16_to_float(bfloat16_from_float(x)); }

void check_arithmetic(const float* a, const float* b) {
  const Vector x = Vector::load(a), y = Vector::load(b);
  expect(is(x + y, [=](int i) { return a[i] + b[i]; }), "+");
  expect(is(x - y, [=](int i) { return a[i] - b[i]; }), "-");
  expect(is(x * y, [=](int i) { return a[i] * b[i]; }), "*");
  expect(is(x / y, [=](int i) { return a[i] / b[i]; }), "/");
  expect(is(x.max(y), [=](int i) { return a[i] > b[i] ? a[i] : b[i]; }), "max");
  expect(is(x.rectified(), [=](int i) { return a[i] <= 0.0f ? 0.0f : a[i]; }), "rectified");
  expect(is(x.root(), [=](int i) { return sqrtf(a[i]); }), "root");
  expect(is(x.clamped(-2.0f, 3.0f),
            [=](int i) { return a[i] < -2.0f ? -2.0f : a[i] > 3.0f ? 3.0f : a[i]; }),
         "clamped");
  const float* whole = kNumbers + kCount - 14;  // products of these are exact
  for (int first = 0; first + kWidth <= 14; first++) {
    const float* w = whole + first;
    const Vector z = Vector::load(w);
    expect(is(z.plus_product(z, z), [=](int i) { return w[i] + w[i] * w[i]; }), "plus_product");
    float sum = 0.0f;
    for (int i = 0; i < kWidth; i++) sum += w[i];
    expect(z.sum() == sum, "sum");
  }
}

void check_bits(const float* a, const float* b) {
  const Vector x = Vector::load(a), y = Vector::load(b);
  std::uint32_t above = 0, different = 0;
  for (int i = 0; i < kWidth; i++) {
    above |= static_cast<std::uint32_t>(!(a[i] <= 0.0f)) << i;
    different |= static_cast<std::uint32_t>(a[i] != b[i]) << i;
  }
  expect(x.not_below_or_zero() == above, "not_below_or_zero");
  expect(x.differs_from(y) == different, "differs_from");
}

// For a choice of entries: those with a set bit.
void check_choice(const float* a, std::uint32_t bits) {
  const Vector x = Vector::load(a);
  expect(is(x.where(bits), [=](int i) { return (bits >> i & 1) != 0 ? a[i] : 0.0f; }), "where");
  float chosen[2 * kWidth];
  for (float& entry : chosen) entry = 77.0f;
  x.store_chosen(bits, chosen);
  int count = 0;
  bool is_right = true;
  for (int i = 0; i < kWidth; i++) {
    if ((bits >> i & 1) != 0) is_right = is_right && same(chosen[count++], a[i]);
  }
  for (int i = kWidth; i < 2 * kWidth; i++) is_right = is_right && chosen[i] == 77.0f;
  expect(is_right, "store_chosen");
}

void check_bfloat16(const float* a) {
  std::uint16_t halves[kWidth];
  Vector::load(a).store(halves);
  expect(is(Vector::load(halves), [=](int i) { return rounded(a[i]); }), "bfloat16");
  bool is_right = true;
  for (int i = 0; i < kWidth; i++) is_right = is_right && halves[i] == bfloat16_from_float(a[i]);
  expect(is_right, "bits of bfloat16");
}

template <class T>
void check_parts(const T* a) {
  for (int count = 0; count < kWidth; count++) {
    T out[kWidth];
    for (int i = 0; i < kWidth; i++) from_float(77.0f, out[i]);
    const Vector part = Vector::load(a, count);
    expect(is(part, [=](int i) { return i < count ? to_float(a[i]) : 0.0f; }), "load of a part");
    part.store(out, count);
    bool is_right = true;
    for (int i = 0; i < kWidth; i++) {
      is_right = is_right && same(to_float(out[i]), i < count ? to_float(a[i]) : rounded(77.0f));
    }
    expect(is_right, "store of a part");
  }
}

void check_several(const float* a) {
  Vector four[4], first, second;
  load_each(a, four);
  for (int u = 0; u < 4; u++) expect(is(four[u], [=](int) { return a[u]; }), "load_each");
  load_pair(a, first, second);
  expect(is(first, [=](int) { return a[0]; }) && is(second, [=](int) { return a[1]; }), "load_pair");
  float pairs[2 * kWidth], sums[4], rectified[4];
  store_pairs(Vector::load(a), Vector::load(a + 1), pairs);
  bool is_right = true;
  for (int i = 0; i < 2 * kWidth; i++) is_right = is_right && same(pairs[i], a[i / 2 + i % 2]);
  expect(is_right, "store_pairs");
  float numbers[4][kWidth];
  for (int u = 0; u < 4; u++) {
    for (int i = 0; i < kWidth; i++) numbers[u][i] = static_cast<float>((u + 3) * (i + 1) * (u - 1));
    four[u] = Vector::load(numbers[u]);
  }
  store_sums(four, sums);
  store_rectified_sums(four, -5.0f, rectified);
  for (int u = 0; u < 4; u++) {
    float sum = 0.0f;
    for (int i = 0; i < kWidth; i++) sum += numbers[u][i];
    expect(sums[u] == sum, "store_sums");
    expect(rectified[u] == (sum - 5.0f <= 0.0f ? 0.0f : sum - 5.0f), "store_rectified_sums");
  }
}

void check_transpose() {
  float in[8 * 9], out[8 * 11];
  for (int i = 0; i < 8 * 9; i++) in[i] = static_cast<float>(i);
  transpose_8x8(in, 9, out, 11);
  bool is_right = true;
  for (int p = 0; p < 8; p++) {
    for (int j = 0; j < 8; j++) is_right = is_right && out[p * 11 + j] == in[j * 9 + p];
  }
  expect(is_right, "transpose_8x8");
}

}  // namespace

void check_vectors() {
  std::uint16_t halves[kCount];
  for (int i = 0; i < kCount; i++) halves[i] = bfloat16_from_float(kNumbers[i]);
  for (int first = 0; first + kWidth < kCount; first++) {
    for (int second = 0; second + kWidth <= kCount; second++) {
      check_arithmetic(kNumbers + first, kNumbers + second);
      check_bits(kNumbers + first, kNumbers + second);
    }
    check_bfloat16(kNumbers + first);
    check_parts(kNumbers + first);
    check_parts(halves + first);
    check_several(kNumbers + first);
  }
  for (std::uint32_t bits = 0; bits < (1u << kWidth); bits += kWidth > 8 ? 37 : 1) {
    check_choice(kNumbers + bits % 9, bits);
  }
  for (int n = -3; n < 5; n++) {  // as exponential.inc.h does
    const Vector x = Vector::all(12582912.0f + static_cast<float>(n));
    expect(is(x.with_bits_shifted(23, 0x3F800000u), [=](int) { return ldexpf(1.0f, n); }),
           "with_bits_shifted");
  }
  check_transpose();
}

}  // namespace RELAKIT_ISA
}  // namespace relakit::check
