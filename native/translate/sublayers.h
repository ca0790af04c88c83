#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norm/kernels.h"
#include "translate/kept_memory.h"
#include "translate/kernels.h"
#include "translate/model.h"

namespace relakit::translate {

// The kernels and the number of threads to use.
struct Machine {
  const Kernels* kernels = nullptr;
  const norm::Kernels* norm_kernels = nullptr;
  int threads = 1;
};

// `isa` is one of usable_isas().
Machine find_machine(const std::string& isa, int threads);

// The width of a row of outputs, padded to whole panels.
std::int64_t whole_panels(std::int64_t outputs);

// Throws std::invalid_argument if there is no such token.
void check_token(std::int64_t token, std::int64_t vocabulary);

// Throws std::invalid_argument if the weights were packed for kernels with another layout.
void check_packed_for(const Machine& machine, const PackedLinear& linear);

// Passes rows of features, x, through the sublayers of a model.
class Sublayers {
 public:
  explicit Sublayers(const Model& model);

  // Start with tokens; positions[i] is the vector of token i's position.
  void embed(const Machine& machine, const float* embeddings, const std::int64_t* tokens,
             const float* const* positions, std::int64_t rows);

  std::int64_t stride() const { return stride_; }
  const float* x() const { return x_.data(); }

  // Applies a linear layer to what a sublayer reads: x, or normalised x in a pre-norm model.
  const float* project(const Machine& machine, const Linear& linear, const LayerNorm& norm);
  // `attend` writes each row's output to mixed(row); finish_attention turns it into the next x.
  float* mixed(std::int64_t row) { return mixed_.data() + row * stride_; }
  void finish_attention(const Machine& machine, const AttentionLayer& layer);
  void feed_forward(const Machine& machine, const FeedForward& layer);
  void normalise_last(const Machine& machine, const LayerNorm& norm);

  // y = linear(x) for any x; y is [rows, y_stride], where y_stride is whole panels.
  void run(const Machine& machine, const PackedLinear& linear, const float* x, std::int64_t x_stride,
           float* y, std::int64_t y_stride, bool is_rectified, const float* added);
  // The same for a given number of rows: x is [rows, inputs].
  void multiply(const Machine& machine, const PackedLinear& linear, const float* x,
                std::int64_t rows, float* y);
  // The call that computes linear(x), for callers that run it panel by panel.
  LinearCall prepare(const Machine& machine, const PackedLinear& linear, const float* x,
                     std::int64_t x_stride);

 private:
  void normalise(const Machine& machine, const LayerNorm& norm, const float* x, float* y);
  const float* before(const Machine& machine, const LayerNorm& norm);
  void after(const Machine& machine, const LayerNorm& norm);

  const Model& model_;
  std::int64_t stride_, rows_ = 0;
  // Rows are `stride_` apart, except in `wide_`.
  Buffer<float> x_, y_, mixed_, wide_, x_scales_;
  Buffer<std::uint8_t> bytes_;
};

// The call for only the `count` rows that start at `first`.
LinearCall some_rows(const LinearCall& all, std::int64_t first, std::int64_t count);

// The attention of a row as the kernels see it; the caller fills in what the row attends to.
AttendCall attend_call(const Model& model, const AttentionLayer& layer);

}  // namespace relakit::translate
