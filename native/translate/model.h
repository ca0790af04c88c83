#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translate/packed_linear.h"

// The weights of a Transformer, in float32 or in bytes, as translation reads them.

namespace relakit::translate {

using Linear = std::shared_ptr<const PackedLinear>;

struct LayerNorm {
  std::vector<float> gain, bias;
  float eps = 0.0f;
};

// RMSNorm of attention's output, with or without a gate. An empty gain means no norm.
struct AttentionNorm {
  std::vector<float> gain, gate;
  float eps = 0.0f;
};

struct AttentionLayer {
  Linear input;   // query, key and value in self-attention, the query in cross-attention
  Linear memory;  // key and value in cross-attention
  Linear output;
  AttentionNorm norm;
  LayerNorm residual_norm;
  bool is_softmax = false;  // otherwise relu, with the next three
  std::vector<float> thresholds;  // one per head; empty: none
  float power = 1.0f, length_exponent = 0.0f;
};

struct FeedForward {
  Linear inner, outer;
  LayerNorm residual_norm;
};

struct EncoderLayer {
  AttentionLayer attention;
  FeedForward feed_forward;
};

struct DecoderLayer {
  AttentionLayer target, source;
  FeedForward feed_forward;
};

struct Model {
  std::int64_t dim = 0, heads = 0;
  bool norm_first = false;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  LayerNorm encoder_norm, decoder_norm;  // an empty gain means none
  Linear output;                         // from states to logits
  // What encoder and decoder read for each token, before its position is added: [vocabulary, dim].
  const float* source_embeddings = nullptr;
  const float* target_embeddings = nullptr;
};

}  // namespace relakit::translate
