#include "norm/bindings.h"

#include "norm/entry.h"

namespace nb = nanobind;

namespace relakit::norm {

namespace {

const NormEntry* entry = nullptr;

nb::object forward(nb::handle x, nb::handle gain, nb::handle gate, double eps, int feature_dims) {
  return entry == nullptr ? nb::none() : entry->forward(x, gain, gate, eps, feature_dims);
}

nb::object backward(nb::handle grad_output, nb::handle x, nb::handle gain, nb::handle gate,
                    nb::handle inverse_rms, double eps, int feature_dims) {
  return entry == nullptr ? nb::none()
                          : entry->backward(grad_output, x, gain, gate, inverse_rms, eps,
                                            feature_dims);
}

}  // namespace

void connect(const NormEntry* connected) { entry = connected; }

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi. Arguments
// are positional only: looking up names would take as long as normalising a short row.
void bind(nb::module_& m) {
  m.def("norm", &forward, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  m.def("norm_backward", &backward, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
        nb::arg(), nb::arg());
}

}  // namespace relakit::norm
