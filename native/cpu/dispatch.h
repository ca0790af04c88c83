#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"

namespace relakit {

// Names of the kernels that this machine can run, best first. "portable" is always among them.
std::vector<std::string> usable_kernels();

// The kernels of a name; std::invalid_argument for one that is unknown or not usable here.
const Kernels& find_kernels(const std::string& name);

}  // namespace relakit
