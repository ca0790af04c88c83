#pragma once

#include <nanobind/nanobind.h>

namespace relakit::translate {

void bind(nanobind::module_& m);

}  // namespace relakit::translate
