#pragma once

#include <nanobind/nanobind.h>

#include "torch/torch.h"

namespace relakit::loss {

// Add the function for the loss to the module. It returns None until it is connected; `torch` must
// then outlive it.
void bind(nanobind::module_& m);
void connect(const Torch& torch);

}  // namespace relakit::loss
