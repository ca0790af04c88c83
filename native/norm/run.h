#pragma once

#include <cstdint>
#include <string>

#include "norm/problem.h"

namespace relakit::norm {

// A parameter or its gradient: contiguous, float32 or bfloat16. `data` is null without a gate.
struct Parameter {
  void* data = nullptr;
  bool is_bfloat16 = false;
};

// One call: the problem without gain and gate, which come in their own dtypes.
struct Call {
  Problem problem;
  Parameter gain, gate;
};

// `isa` is one of usable_isas(). Results do not depend on the number of threads.
void run_forward(const std::string& isa, int threads, const Call& call,
                 const ForwardResult& result);
void run_backward(const std::string& isa, int threads, const Call& call,
                  const BackwardResult& result, const Parameter& grad_gain,
                  const Parameter& grad_gate);

}  // namespace relakit::norm
