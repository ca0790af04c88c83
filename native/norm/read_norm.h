#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "norm/run.h"
#include "torch/torch.h"

namespace relakit::norm {

// Read gain and gate (a tensor or None), of `features` features each, into the call. False if the
// kernels cannot use them.
bool read_parameters(const Torch& torch, nanobind::handle gain, nanobind::handle gate,
                     std::int64_t features, Call& call);

}  // namespace relakit::norm
