#pragma once

#include <nanobind/nanobind.h>

namespace relakit::decode {

void bind(nanobind::module_& m);

}  // namespace relakit::decode
