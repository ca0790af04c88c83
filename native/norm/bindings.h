#pragma once

#include <nanobind/nanobind.h>

namespace relakit::norm {

// Add the norm's functions to the extension.
void bind(nanobind::module_& m);

}  // namespace relakit::norm
