#pragma once

#include <nanobind/nanobind.h>

namespace relakit::attention {

// Put the kernels for attention into the module.
void bind(nanobind::module_& m);

}  // namespace relakit::attention
