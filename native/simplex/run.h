#pragma once

#include <string>

#include "simplex/problem.h"

namespace relakit::simplex {

// `isa` is one of usable_isas(). Results do not depend on the number of threads.
void run_forward(const std::string& isa, int threads, const Problem& p,
                 const Forward& f);
void run_backward(const std::string& isa, int threads, const Problem& p,
                  const Backward& b);

}  // namespace relakit::simplex
