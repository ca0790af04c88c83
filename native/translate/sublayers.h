#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norm/kernels.h"
#include "translate/kernels.h"
#include "translate/model.h"

namespace relakit::translate {

// Which kernels to use, and how many threads.
struct Machine {
  const Kernels* kernels = nullptr;
  const norm::Kernels* norm_kernels = nullptr;
  int threads = 1;
};

// `isa` is one of usable_isas().
Machine find_machine(const std::string& isa, int threads);

// Width of a row that holds whole panels of outputs.
std::int64_t whole_panels(std::int64_t outputs);

// Rows of features on their way through the sublayers of a model: x.
class Sublayers {
 public:
  explicit Sublayers(const Model& model);

  // Start with tokens, at positions whose vectors are given: position[i] for token i.
  void embed(const Machine& machine, const std::int64_t* tokens, const float* const* positions,
             std::int64_t rows);

  std::int64_t rows() const { return rows_; }
  std::int64_t stride() const { return stride_; }
  const float* x() const { return x_.data(); }

  // The rows that a sublayer reads, x or with pre-norm its norm, through a linear layer.
  const float* project(const Machine& machine, const Linear& linear, const LayerNorm& norm);
  // From one row of features per row, which `attend` writes to mixed(row), to the next x.
  float* mixed(std::int64_t row) { return mixed_.data() + row * stride_; }
  void finish_attention(const Machine& machine, const AttentionLayer& layer);
  void feed_forward(const Machine& machine, const FeedForward& layer);
  void normalise_last(const Machine& machine, const LayerNorm& norm);

  // y = linear(x) for rows of any origin; [rows, y_stride] with y_stride of whole panels.
  void run(const Machine& machine, const PackedLinear& linear, const float* x, std::int64_t x_stride,
           float* y, std::int64_t y_stride, bool is_rectified, const float* added);
  // The same for some panels alone, of x itself, as `call` says once it was prepared.
  LinearCall prepare(const Machine& machine, const PackedLinear& linear, const float* x,
                     std::int64_t x_stride);

 private:
  void normalise(const Machine& machine, const LayerNorm& norm, const float* x, float* y);
  const float* before(const Machine& machine, const LayerNorm& norm);
  void after(const Machine& machine, const LayerNorm& norm);

  const Model& model_;
  std::int64_t stride_, rows_ = 0;
  // One row each, `stride_` apart but for those of `wide_`.
  std::vector<float> x_, y_, mixed_, wide_, x_scales_;
  std::vector<std::uint8_t> bytes_;
};

// One row's attention in all heads, as the kernels see it, but for what to attend to.
AttendCall attend_call(const Model& model, const AttentionLayer& layer);

}  // namespace relakit::translate
