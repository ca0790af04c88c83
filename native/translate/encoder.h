#pragma once

#include <cstdint>
#include <vector>

#include "translate/kept_memory.h"
#include "translate/sublayers.h"

namespace relakit::translate {

// Encoded sentences, one after the other without padding.
struct Memory {
  std::vector<std::int64_t> starts;      // [batch + 1]: where each sentence's rows begin
  std::vector<Buffer<float>> rows;  // per decoder layer: [all, 2 * dim], keys, then values
  std::int64_t stride = 0;               // from row to row
};

// `tokens` are the tokens of all sentences, one after the other, and `lengths` how many each
// sentence has; `positions` is [longest, dim].
Memory encode(const Model& model, const Machine& machine, const std::int64_t* tokens,
              const std::int64_t* lengths, std::int64_t batch, const float* positions);

}  // namespace relakit::translate
