// The inner loops of translation, written once with the vector type and compiled once per
// instruction set. The including file must have defined RELAKIT_ISA and included that set's Vector
// and ByteSums.
//
// Everything here is local to the file, and no template or inline function of the standard library
// is used: the linker would share one copy of it between files, compiled for an instruction set
// that a machine may lack.

#include <math.h>

#include <cstdint>

#include "translate/kernels.h"
#include "translate/vectors.inc.h"
#include "translate/linear.inc.h"
#include "translate/attend.inc.h"

namespace relakit::translate::RELAKIT_ISA {
namespace {

void layer_norm(const float* x, std::int64_t size, const float* gain, const float* bias, float eps,
                float* y) {
  Vector total = Vector::all(0.0f);
  for (std::int64_t i = 0; i < size; i += kWidth) total = total + load_up_to(x + i, size - i);
  const float mean = total.sum() / static_cast<float>(size);
  Vector squares = Vector::all(0.0f);
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector centred = Vector::load(x + i) - Vector::all(mean);
    squares = squares.plus_product(centred, centred);
  }
  float square_sum = squares.sum();
  for (; i < size; i++) square_sum += (x[i] - mean) * (x[i] - mean);
  const Vector scale = Vector::all(1.0f / sqrtf(square_sum / static_cast<float>(size) + eps));
  for (i = 0; i < size; i += kWidth) {
    const Vector normalised = (load_up_to(x + i, size - i) - Vector::all(mean)) * scale;
    const Vector shift = load_up_to(bias + i, size - i), factor = load_up_to(gain + i, size - i);
    store_up_to(shift.plus_product(normalised, factor), y + i, size - i);
  }
}

float add_exponentials(const float* logits, float* largest, float* sum) {
  constexpr int vectors = kPanel / kWidth;
  Vector x[vectors];
  for (int v = 0; v < vectors; v++) x[v] = Vector::load(logits + v * kWidth);
  Vector most = x[0];
  for (int v = 1; v < vectors; v++) most = most.max(x[v]);
  const float largest_here = largest_of(most);
  if (largest_here > *largest) {
    *sum *= expf(*largest - largest_here);
    *largest = largest_here;
  }
  const Vector shift = Vector::all(*largest);
  Vector total = Vector::all(0.0f);
  for (int v = 0; v < vectors; v++) total = total + exponential(x[v] - shift);
  *sum += total.sum();
  return largest_here;
}

}  // namespace
}  // namespace relakit::translate::RELAKIT_ISA
