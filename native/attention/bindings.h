#pragma once

#include <nanobind/nanobind.h>

namespace relakit {

// Put the kernels for attention into the module.
void bind_attention(nanobind::module_& m);

}  // namespace relakit
