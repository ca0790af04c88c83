#include "translate/kernels.h"

#include "cpu/dispatch.h"

namespace relakit::translate {

const Kernels& find_kernels(const std::string& isa) {
  return find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
}

}  // namespace relakit::translate
