#pragma once

#include <string>
#include <utility>
#include <vector>

namespace relakit {

// Instruction sets by name, and whether code may use them on this machine: the processor has them
// and the operating system saves their registers. Only those of the architecture that this was
// compiled for are listed, in order of age.
std::vector<std::pair<std::string, bool>> cpu_features();

}  // namespace relakit
