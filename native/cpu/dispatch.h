#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"

namespace relakit {

// Names of the kernels that this machine can run, best first. "portable" is always among them.
std::vector<std::string> usable_kernels();

// RELAKIT_... in the environment; null where it is not set or empty. Not os.environ, which keeps it up
// to date: to ask that takes longer than a short call does.
const char* environment(const char* variable);

// The instruction set to use: the best one, or the one that RELAKIT_CPU_ISA names; null if that is not
// usable here.
const std::string* chosen_isa();

// The kernels of a name; std::invalid_argument for one that is unknown or not usable here.
const Kernels& find_kernels(const std::string& name);

}  // namespace relakit
