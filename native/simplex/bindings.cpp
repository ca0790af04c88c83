#include "simplex/bindings.h"

#include "simplex/entry.h"

namespace nb = nanobind;

namespace relakit::simplex {

namespace {

const SimplexEntry* entry = nullptr;

nb::object forward(nb::handle scores, bool is_squared) {
  return entry == nullptr ? nb::none() : entry->forward(scores, is_squared);
}

nb::object backward(nb::handle grad_weights, nb::handle weights, bool is_squared) {
  return entry == nullptr ? nb::none() : entry->backward(grad_weights, weights, is_squared);
}

}  // namespace

void connect(const SimplexEntry* connected) { entry = connected; }

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
void bind(nb::module_& m) {
  m.def("simplex", &forward, nb::arg(), nb::arg());
  m.def("simplex_backward", &backward, nb::arg(), nb::arg(), nb::arg());
}

}  // namespace relakit::simplex
