#pragma once

#include <string>

#include "loss/problem.h"

namespace relakit::loss {

// `isa` is one of usable_isas(). Results do not depend on the number of threads. Throws
// std::invalid_argument if a target is not in the vocabulary.
void run(const std::string& isa, int threads, const Problem& p, const Result& result);

}  // namespace relakit::loss
