#pragma once

#include <string>
#include <utility>
#include <vector>

namespace relakit {

// Extensions of the instruction set by name, oldest first, and whether code may use them here: the
// processor has them and the operating system saves their registers. Only extensions of the
// architecture that this was compiled for are listed.
std::vector<std::pair<std::string, bool>> cpu_features();

// Whether AMD made the processor.
bool is_amd();

// Whether code may use all of these extensions here.
bool has_cpu_features(const std::vector<std::string>& wanted);

}  // namespace relakit
