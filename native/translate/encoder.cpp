#include "translate/encoder.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "translate/buffers.h"
#include "translate/parallel_for.h"

namespace relakit::translate {

namespace {

void attend_to_itself(const Model& model, const Machine& machine, const AttentionLayer& layer,
                      const Memory& memory, Sublayers& sublayers) {
  const float* projected = sublayers.project(machine, layer.input, layer.residual_norm);
  const std::int64_t stride = whole_panels(3 * model.dim);
  const auto batch = static_cast<std::int64_t>(memory.starts.size()) - 1;
  parallel_for(batch, machine.threads, 1, [&](std::int64_t sentence) {
    const std::int64_t start = memory.starts[as_index(sentence)];
    AttendCall call = attend_call(model, layer);
    call.count = memory.starts[as_index(sentence) + 1] - start;
    Buffer<float> scratch(as_index(2 * (call.count + kPanel)));
    std::vector<std::int32_t> places(as_index(call.count));
    std::iota(places.begin(), places.end(), 0);
    call.scratch = scratch.data();
    call.places = places.data();
    call.rows = projected + start * stride + model.dim;
    call.row_stride = stride;
    for (std::int64_t row = start; row < start + call.count; row++) {
      call.query = projected + row * stride;
      call.output = sublayers.mixed(row);
      machine.kernels->attend(call);
    }
  });
  sublayers.finish_attention(machine, layer);
}

}  // namespace

Memory encode(const Model& model, const Machine& machine, const std::int64_t* tokens,
              const std::int64_t* lengths, std::int64_t batch, const float* positions) {
  check_packed_for(machine, *model.output);
  Memory memory;
  std::vector<const float*> position_of_row;
  memory.starts.push_back(0);
  for (std::int64_t sentence = 0; sentence < batch; sentence++) {
    if (lengths[sentence] < 1) {
      throw std::invalid_argument("sentence " + std::to_string(sentence + 1) + " has no tokens");
    }
    memory.starts.push_back(memory.starts.back() + lengths[sentence]);
    for (std::int64_t i = 0; i < lengths[sentence]; i++) {
      position_of_row.push_back(positions + i * model.dim);
    }
  }
  Sublayers sublayers(model);
  sublayers.embed(machine, model.source_embeddings, tokens, position_of_row.data(),
                  memory.starts.back());
  for (const EncoderLayer& layer : model.encoder) {
    attend_to_itself(model, machine, layer.attention, memory, sublayers);
    sublayers.feed_forward(machine, layer.feed_forward);
  }
  sublayers.normalise_last(machine, model.encoder_norm);
  memory.stride = whole_panels(2 * model.dim);
  for (const DecoderLayer& layer : model.decoder) {
    Buffer<float> rows(as_index(memory.starts.back() * memory.stride));
    sublayers.run(machine, *layer.source.memory, sublayers.x(), sublayers.stride(), rows.data(),
                  memory.stride, false, nullptr);
    memory.rows.push_back(std::move(rows));
  }
  return memory;
}

}  // namespace relakit::translate
