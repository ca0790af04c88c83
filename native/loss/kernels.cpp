#include "loss/kernels.h"

#include "cpu/dispatch.h"

namespace relakit::loss {

const Kernels& find_kernels(const std::string& isa) {
  return find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
}

}  // namespace relakit::loss
