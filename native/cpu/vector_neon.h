#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace relakit::neon {
namespace {

// For each combination of four bits: how to move the floats whose bit is set to the front, as byte
// indices, and how many there are.
struct FrontOfFour {
  std::uint8_t bytes[16][16];
  std::uint8_t count[16];
  constexpr FrontOfFour() : bytes(), count() {
    for (unsigned bits = 0; bits < 16; bits++) {
      for (unsigned i = 0; i < 4; i++) {
        if ((bits >> i & 1) == 0) continue;
        for (unsigned b = 0; b < 4; b++) {
          bytes[bits][4u * count[bits] + b] = static_cast<std::uint8_t>(4 * i + b);
        }
        count[bits]++;
      }
    }
  }
};
constexpr FrontOfFour front_of_four;

// Eight floats in two registers of four. The 32 registers hold as much as AVX2's 16, so the same
// shapes fit, and row positions are looked up half as often as they would be for vectors of four.
// vector_portable.h explains the members.
struct Vector {
  static constexpr int width = 8;
  static constexpr int registers = 2;
  float32x4_t low, high;

  static Vector all(float x) {
    const float32x4_t four = vdupq_n_f32(x);
    return {four, four};
  }
  static Vector load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static Vector load(const std::uint16_t* p) {
    const uint16x8_t halves = vld1q_u16(p);
    return {widened(vget_low_u16(halves)), widened(vget_high_u16(halves))};
  }
  void store(float* p) const {
    vst1q_f32(p, low);
    vst1q_f32(p + 4, high);
  }
  void store(std::uint16_t* p) const {
    vst1q_u16(p, vcombine_u16(narrowed(low), narrowed(high)));
  }
  template <class T>
  static Vector load(const T* p, int count) {
    T part[width] = {};
    for (int i = 0; i < count; i++) part[i] = p[i];
    return load(part);
  }
  template <class T>
  void store(T* p, int count) const {
    T part[width];
    store(part);
    for (int i = 0; i < count; i++) p[i] = part[i];
  }

  Vector operator+(const Vector& b) const {
    return {vaddq_f32(low, b.low), vaddq_f32(high, b.high)};
  }
  Vector operator-(const Vector& b) const {
    return {vsubq_f32(low, b.low), vsubq_f32(high, b.high)};
  }
  Vector operator*(const Vector& b) const {
    return {vmulq_f32(low, b.low), vmulq_f32(high, b.high)};
  }
  Vector operator/(const Vector& b) const {
    return {vdivq_f32(low, b.low), vdivq_f32(high, b.high)};
  }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {vfmaq_f32(low, a.low, b.low), vfmaq_f32(high, a.high, b.high)};
  }
  // Not the maximum instruction, which returns NaN if the first operand is NaN.
  Vector max(const Vector& b) const {
    return {vbslq_f32(vcgtq_f32(low, b.low), low, b.low),
            vbslq_f32(vcgtq_f32(high, b.high), high, b.high)};
  }
  // Here that instruction is right.
  Vector clamped(float least, float most) const {
    const float32x4_t from = vdupq_n_f32(least), to = vdupq_n_f32(most);
    return {vminq_f32(vmaxq_f32(low, from), to), vminq_f32(vmaxq_f32(high, from), to)};
  }
  Vector rectified() const {
    const float32x4_t zero = vdupq_n_f32(0.0f);
    return {vmaxq_f32(low, zero), vmaxq_f32(high, zero)};
  }
  Vector root() const { return {vsqrtq_f32(low), vsqrtq_f32(high)}; }
  Vector with_bits_shifted(int count, std::uint32_t added) const {
    const int32x4_t by = vdupq_n_s32(count);
    const uint32x4_t more = vdupq_n_u32(added);
    return {vreinterpretq_f32_u32(vaddq_u32(vshlq_u32(vreinterpretq_u32_f32(low), by), more)),
            vreinterpretq_f32_u32(vaddq_u32(vshlq_u32(vreinterpretq_u32_f32(high), by), more))};
  }
  float sum() const { return vaddvq_f32(vaddq_f32(low, high)); }

  std::uint32_t not_below_or_zero() const {
    return ~bits_of(vclezq_f32(low), vclezq_f32(high)) & 255u;
  }
  std::uint32_t differs_from(const Vector& b) const {
    return ~bits_of(vceqq_f32(low, b.low), vceqq_f32(high, b.high)) & 255u;
  }
  Vector where(std::uint32_t bits) const {
    constexpr std::uint32_t each[width] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint32x4_t all_bits = vdupq_n_u32(bits);
    return {kept(low, vtstq_u32(all_bits, vld1q_u32(each))),
            kept(high, vtstq_u32(all_bits, vld1q_u32(each + 4)))};
  }
  void store_chosen(std::uint32_t bits, float* p) const {
    const std::uint32_t first = bits & 15, second = bits >> 4 & 15;
    vst1q_f32(p, to_front(low, first));
    vst1q_f32(p + front_of_four.count[first], to_front(high, second));
  }

 private:
  static float32x4_t widened(uint16x4_t halves) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(halves), 16));
  }
  static uint16x4_t narrowed(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
    const uint16x4_t is_number = vmovn_u32(vceqq_f32(x, x));
    return vbsl_u16(is_number, vshrn_n_u32(sum, 16), vdup_n_u16(0x7FC0));
  }
  // One bit for each of eight entries that are all ones or all zeros.
  static std::uint32_t bits_of(uint32x4_t first, uint32x4_t second) {
    constexpr std::uint16_t each[width] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t entries =
        vuzp1q_u16(vreinterpretq_u16_u32(first), vreinterpretq_u16_u32(second));
    return vaddvq_u16(vandq_u16(entries, vld1q_u16(each)));
  }
  static float32x4_t kept(float32x4_t x, uint32x4_t mask) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), mask));
  }
  static float32x4_t to_front(float32x4_t x, std::uint32_t bits) {
    const uint8x16_t order = vld1q_u8(front_of_four.bytes[bits]);
    return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(x), order));
  }
};

// One load, as multiply-adds can take a factor from any lane of a register.
inline void load_each(const float* p, Vector (&out)[4]) {
  const float32x4_t four = vld1q_f32(p);
  out[0].low = out[0].high = vdupq_laneq_f32(four, 0);
  out[1].low = out[1].high = vdupq_laneq_f32(four, 1);
  out[2].low = out[2].high = vdupq_laneq_f32(four, 2);
  out[3].low = out[3].high = vdupq_laneq_f32(four, 3);
}

inline void load_pair(const float* p, Vector& first, Vector& second) {
  const float32x2_t pair = vld1_f32(p);
  first.low = first.high = vdupq_lane_f32(pair, 0);
  second.low = second.high = vdupq_lane_f32(pair, 1);
}

inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  vst1q_f32(out, vzip1q_f32(a.low, b.low));
  vst1q_f32(out + 4, vzip2q_f32(a.low, b.low));
  vst1q_f32(out + 8, vzip1q_f32(a.high, b.high));
  vst1q_f32(out + 12, vzip2q_f32(a.high, b.high));
}

// The sums of four vectors.
inline float32x4_t sums_of(const Vector (&x)[4]) {
  const float32x4_t ab = vpaddq_f32(vaddq_f32(x[0].low, x[0].high), vaddq_f32(x[1].low, x[1].high));
  const float32x4_t cd = vpaddq_f32(vaddq_f32(x[2].low, x[2].high), vaddq_f32(x[3].low, x[3].high));
  return vpaddq_f32(ab, cd);
}

inline void store_sums(const Vector (&x)[4], float* out) { vst1q_f32(out, sums_of(x)); }

inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  vst1q_f32(out, vmaxq_f32(vaddq_f32(sums_of(x), vdupq_n_f32(shift)), vdupq_n_f32(0.0f)));
}

inline void transpose_4x4(const float* in, std::int64_t in_stride, float* out,
                          std::int64_t out_stride) {
  const float32x4_t a = vld1q_f32(in), b = vld1q_f32(in + in_stride);
  const float32x4_t c = vld1q_f32(in + 2 * in_stride), d = vld1q_f32(in + 3 * in_stride);
  const float32x4_t ac_low = vzip1q_f32(a, c), ac_high = vzip2q_f32(a, c);
  const float32x4_t bd_low = vzip1q_f32(b, d), bd_high = vzip2q_f32(b, d);
  vst1q_f32(out, vzip1q_f32(ac_low, bd_low));
  vst1q_f32(out + out_stride, vzip2q_f32(ac_low, bd_low));
  vst1q_f32(out + 2 * out_stride, vzip1q_f32(ac_high, bd_high));
  vst1q_f32(out + 3 * out_stride, vzip2q_f32(ac_high, bd_high));
}

inline void transpose_8x8(const float* in, std::int64_t in_stride, float* out,
                          std::int64_t out_stride) {
  for (int j = 0; j < 8; j += 4) {
    transpose_4x4(in + j * in_stride, in_stride, out + j, out_stride);
    transpose_4x4(in + j * in_stride + 4, in_stride, out + 4 * out_stride + j, out_stride);
  }
}

}  // namespace
}  // namespace relakit::neon
