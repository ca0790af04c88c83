#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "norm/run.h"
#include "torch/torch.h"

namespace relakit::norm {

// Gain and gate (a tensor or None) of so many features, read into the call: whether the kernels can
// use them.
bool read_parameters(const Torch& torch, nanobind::handle gain, nanobind::handle gate,
                     std::int64_t features, Call& call);

}  // namespace relakit::norm
