// The exponential and the sigmoid of a vector. The including file must have defined RELAKIT_ISA and
// included the vector type of that instruction set.

namespace relakit::RELAKIT_ISA {
namespace {

// e^u, exact to about the last bit: at least e^-87, inf from about 88.4 on, NaN for NaN.
inline Vector exponential(const Vector& argument) {
  // e^u = 2^n * e^f with n an integer and |f| <= log(2) / 2. Adding 1.5 * 2^23 rounds to an
  // integer, which ends up in the lowest bits. From u = 88.4 on, n is 128, and 2^n is inf.
  const Vector u = argument.clamped(-87.0f, 89.0f);
  const Vector rounder = Vector::all(12582912.0f);
  const Vector shifted = rounder.plus_product(u, Vector::all(1.44269504f));
  const Vector n = shifted - rounder;
  // log(2) in two parts: the first has few digits, so that its product with n is exact.
  Vector f = u.plus_product(n, Vector::all(-0.693359375f));
  f = f.plus_product(n, Vector::all(2.12194440e-4f));
  Vector series = Vector::all(1.0f / 5040);  // the series of e^f; omitted terms are below 1e-8
  series = Vector::all(1.0f / 720).plus_product(series, f);
  series = Vector::all(1.0f / 120).plus_product(series, f);
  series = Vector::all(1.0f / 24).plus_product(series, f);
  series = Vector::all(1.0f / 6).plus_product(series, f);
  series = Vector::all(0.5f).plus_product(series, f);
  series = Vector::all(1.0f).plus_product(series, f);
  series = Vector::all(1.0f).plus_product(series, f);
  return series * shifted.with_bits_shifted(23, 0x3F800000u);
}

// 1 / (1 + e^-t), exact to about the last bit.
inline Vector sigmoid(const Vector& t) {
  const Vector one = Vector::all(1.0f);
  return one / (exponential(Vector::all(0.0f) - t) + one);
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
