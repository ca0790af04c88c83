// Functions over a vector type. The including file has defined RELAKIT_ISA and included the type.

namespace relakit::lanes::RELAKIT_ISA {
namespace {

// e^u, to about the last bit: at least e^-87, inf from about 88.4 on, NaN for NaN.
inline Lanes exponential(const Lanes& argument) {
  // e^u = 2^n * e^f with n an integer and |f| <= log(2) / 2. Adding 1.5 * 2^23 rounds to an integer,
  // which is then found in the lowest bits. From u = 88.4 on, n is 128, whose power of two is inf.
  const Lanes u = argument.clamped(-87.0f, 89.0f);
  const Lanes rounder = Lanes::all(12582912.0f);
  const Lanes shifted = u.times_plus(Lanes::all(1.44269504f), rounder);
  const Lanes n = shifted - rounder;
  // log(2) in two parts: the first has few digits, so that its product with n is exact.
  Lanes f = n.times_plus(Lanes::all(-0.693359375f), u);
  f = n.times_plus(Lanes::all(2.12194440e-4f), f);
  Lanes series = Lanes::all(1.0f / 5040);  // of e^f; what is left out is below 1e-8
  series = series.times_plus(f, Lanes::all(1.0f / 720));
  series = series.times_plus(f, Lanes::all(1.0f / 120));
  series = series.times_plus(f, Lanes::all(1.0f / 24));
  series = series.times_plus(f, Lanes::all(1.0f / 6));
  series = series.times_plus(f, Lanes::all(0.5f));
  series = series.times_plus(f, Lanes::all(1.0f));
  series = series.times_plus(f, Lanes::all(1.0f));
  return series * shifted.with_bits_shifted(23, 0x3F800000u);
}

// 1 / (1 + e^-t), to about the last bit.
inline Lanes sigmoid(const Lanes& t) {
  const Lanes one = Lanes::all(1.0f);
  return one / (exponential(Lanes::all(0.0f) - t) + one);
}

}  // namespace
}  // namespace relakit::lanes::RELAKIT_ISA
