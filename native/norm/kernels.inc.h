// RMSNorm, gated or not, written once over the vector type and compiled once per instruction set.
// The including file must define RELAKIT_ISA and include the vector type of that name.
//
// Everything here is local to the file, and no template or inline function of the standard library
// is used: the linker would share one copy of it between files, compiled for an instruction set
// that a machine may lack.

#include <math.h>

#include <cstdint>

#include "cpu/exponential.inc.h"
#include "norm/problem.h"

namespace relakit::norm::RELAKIT_ISA {
namespace {

using relakit::RELAKIT_ISA::Vector;
using relakit::RELAKIT_ISA::sigmoid;

constexpr int kWidth = Vector::width;

// How many entries of a vector are used: all, or the last few of a piece.
struct Whole {};
struct Part {
  int count;
};

template <class T>
Vector load(const T* p, Whole) {
  return Vector::load(p);
}
template <class T>
Vector load(const T* p, Part part) {
  return Vector::load(p, part.count);
}
template <class T>
void store(const Vector& x, T* p, Whole) {
  x.store(p);
}
template <class T>
void store(const Vector& x, T* p, Part part) {
  x.store(p, part.count);
}

// Call visit(piece, first feature in the piece, Whole or Part) for each vector of a row.
template <class Visit>
void for_each_vector(const Problem& p, const Visit& visit) {
  for (std::int64_t piece = 0; piece < p.pieces; piece++) {
    std::int64_t i = 0;
    for (; i + kWidth <= p.size; i += kWidth) visit(piece, i, Whole{});
    if (i < p.size) visit(piece, i, Part{static_cast<int>(p.size - i)});
  }
}

template <class T>
T* row_of(T* data, const Strides& strides, const Problem& p, std::int64_t row) {
  return data + row / p.rows * strides.outer + row % p.rows * strides.row;
}

template <class T>
float inverse_rms(const Problem& p, const T* input) {
  // Several sums at a time, as each addition waits for the one before it.
  Vector even = Vector::all(0.0f), odd = even, rest = even;
  for (std::int64_t piece = 0; piece < p.pieces; piece++) {
    const T* in = input + piece * p.strides.piece;
    std::int64_t i = 0;
    for (; i + 2 * kWidth <= p.size; i += 2 * kWidth) {
      const Vector x = Vector::load(in + i), y = Vector::load(in + i + kWidth);
      even = even.plus_product(x, x);
      odd = odd.plus_product(y, y);
    }
    for (; i < p.size; i += kWidth) {
      const std::int64_t left = p.size - i;
      const Vector x = left >= kWidth ? Vector::load(in + i)
                                     : Vector::load(in + i, static_cast<int>(left));
      rest = rest.plus_product(x, x);
    }
  }
  const float mean = ((even + odd) + rest).sum() / static_cast<float>(features_of(p));
  return 1.0f / sqrtf(mean + p.eps);
}

template <class T, bool is_gated>
void forward_rows(const Problem& p, const ForwardResult& result, std::int64_t begin,
                  std::int64_t end) {
  for (std::int64_t row = begin; row < end; row++) {
    const T* input = row_of(static_cast<const T*>(p.input), p.strides, p, row);
    T* output = static_cast<T*>(result.output) + row * features_of(p);
    const float scale = inverse_rms(p, input);
    if (result.inverse_rms != nullptr) result.inverse_rms[row] = scale;
    for_each_vector(p, [&](std::int64_t piece, std::int64_t i, auto extent) {
      const std::int64_t j = piece * p.size + i;
      const Vector x = load(input + piece * p.strides.piece + i, extent);
      Vector y = x * Vector::all(scale) * load(p.gain + j, extent);
      if constexpr (is_gated) y = sigmoid(x * load(p.gate + j, extent)) * y;
      store(y, output + j, extent);
    });
  }
}

// With n = x / rms and s the gate's sigmoid, y = s n gain. The gradients of a row:
//   gain: dy s n;   gate: dy s (1 - s) n gain x
//   x: dn / rms - n mean(dn n) / rms + dy s (1 - s) n gain gate,   where dn = dy s gain
template <class T, bool is_gated>
void backward_rows(const Problem& p, const BackwardResult& result, const BlockSums& sums,
                   float* scratch, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row++) {
    const T* input = row_of(static_cast<const T*>(p.input), p.strides, p, row);
    const T* grad_output = row_of(static_cast<const T*>(result.grad_output),
                                  result.grad_output_strides, p, row);
    T* grad_input = row_of(static_cast<T*>(result.grad_input), result.grad_input_strides, p, row);
    const Vector scale = Vector::all(result.inverse_rms[row]), one = Vector::all(1.0f);
    Vector products = Vector::all(0.0f);
    for_each_vector(p, [&](std::int64_t piece, std::int64_t i, auto extent) {
      const std::int64_t j = piece * p.size + i;
      const Vector x = load(input + piece * p.strides.piece + i, extent), n = x * scale;
      Vector dy = load(grad_output + j, extent), through_gate = Vector::all(0.0f);
      const Vector gain = load(p.gain + j, extent);
      if constexpr (is_gated) {
        const Vector gate = load(p.gate + j, extent), s = sigmoid(x * gate);
        dy = dy * s;
        const Vector slope = dy * gain * n * (one - s);
        store(load(sums.gate + j, extent).plus_product(slope, x), sums.gate + j, extent);
        through_gate = slope * gate;
      }
      store(load(sums.gain + j, extent).plus_product(dy, n), sums.gain + j, extent);
      const Vector dn = dy * gain;
      products = products.plus_product(dn, n);
      store(through_gate.plus_product(dn, scale), scratch + j, extent);
    });
    const Vector mean = Vector::all(products.sum() / static_cast<float>(features_of(p)));
    const Vector factor = Vector::all(0.0f) - mean * scale;
    for_each_vector(p, [&](std::int64_t piece, std::int64_t i, auto extent) {
      const Vector n = load(input + piece * p.strides.piece + i, extent) * scale;
      const Vector rest = load(scratch + piece * p.size + i, extent);
      store(rest.plus_product(n, factor), grad_input + piece * result.grad_input_strides.piece + i,
            extent);
    });
  }
}

void forward(const Problem& p, const ForwardResult& result, std::int64_t begin, std::int64_t end) {
  if (p.is_bfloat16) {
    if (p.gate != nullptr) {
      forward_rows<std::uint16_t, true>(p, result, begin, end);
    } else {
      forward_rows<std::uint16_t, false>(p, result, begin, end);
    }
  } else {
    if (p.gate != nullptr) {
      forward_rows<float, true>(p, result, begin, end);
    } else {
      forward_rows<float, false>(p, result, begin, end);
    }
  }
}

void backward(const Problem& p, const BackwardResult& result, const BlockSums& sums,
              float* scratch, std::int64_t begin, std::int64_t end) {
  if (p.is_bfloat16) {
    if (p.gate != nullptr) {
      backward_rows<std::uint16_t, true>(p, result, sums, scratch, begin, end);
    } else {
      backward_rows<std::uint16_t, false>(p, result, sums, scratch, begin, end);
    }
  } else {
    if (p.gate != nullptr) {
      backward_rows<float, true>(p, result, sums, scratch, begin, end);
    } else {
      backward_rows<float, false>(p, result, sums, scratch, begin, end);
    }
  }
}

}  // namespace
}  // namespace relakit::norm::RELAKIT_ISA
