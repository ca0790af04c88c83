#pragma once

#include <nanobind/nanobind.h>

namespace relakit {

class AttentionEntry;

// Put the functions for attention into the module. They return None until they are connected.
void bind_attention(nanobind::module_& m);
void connect_attention(const AttentionEntry* entry);

}  // namespace relakit
