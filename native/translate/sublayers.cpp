#include "translate/sublayers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "translate/buffers.h"
#include "translate/parallel_for.h"

namespace relakit::translate {

namespace {

// This many rows of inputs stay in the cache while all weights pass by.
constexpr std::int64_t kRowBlock = 256;

// The distance between the wide rows inside feed-forward layers: whole panels plus one cache line.
// A power of two apart, their lines would share a few sets of the cache, and evict each other.
std::int64_t row_stride(std::int64_t outputs) {
  return whole_panels(outputs) + 64 / static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

Machine find_machine(const std::string& isa, int threads) {
  return {&find_kernels(isa), &norm::find_kernels(isa), threads};
}

std::int64_t whole_panels(std::int64_t outputs) { return (outputs + kPanel - 1) / kPanel * kPanel; }

void check_token(std::int64_t token, std::int64_t vocabulary) {
  if (token >= 0 && token < vocabulary) return;
  throw std::invalid_argument("token " + std::to_string(token) + " is not among the model's " +
                              std::to_string(vocabulary));
}

void check_packed_for(const Machine& machine, const PackedLinear& linear) {
  if (linear.layout() == machine.kernels->layout) return;
  throw std::invalid_argument(std::string("the weights were not packed for ") +
                              machine.kernels->isa);
}

Sublayers::Sublayers(const Model& model) : model_(model), stride_(whole_panels(model.dim)) {}

void Sublayers::embed(const Machine& machine, const float* embeddings, const std::int64_t* tokens,
                      const float* const* positions, std::int64_t rows) {
  const std::int64_t dim = model_.dim, vocabulary = model_.output->outputs();
  for (std::int64_t row = 0; row < rows; row++) check_token(tokens[row], vocabulary);
  rows_ = rows;
  for (auto* memory : {&x_, &y_, &mixed_}) make_room(*memory, rows * stride_);
  make_room(x_scales_, rows);
  parallel_for(rows, machine.threads, kWorkPerThread / dim, [&](std::int64_t row) {
    const float* embedding = embeddings + tokens[row] * dim;
    float* x = x_.data() + row * stride_;
    for (std::int64_t i = 0; i < dim; i++) x[i] = embedding[i] + positions[row][i];
  });
}

LinearCall Sublayers::prepare(const Machine& machine, const PackedLinear& linear, const float* x,
                              std::int64_t x_stride) {
  LinearCall call = linear.call();
  call.rows = rows_;
  call.x = x;
  call.x_stride = x_stride;
  if (!linear.in_bytes()) return call;
  const std::int64_t row_bytes = linear.row_bytes();
  make_room(bytes_, rows_ * row_bytes);
  call.byte_x = bytes_.data();
  call.x_stride = row_bytes;
  call.x_scales = x_scales_.data();
  parallel_for(rows_, machine.threads, kWorkPerThread / linear.inputs(), [&](std::int64_t row) {
    x_scales_[as_index(row)] = machine.kernels->quantise(
        x + row * x_stride, linear.inputs(), bytes_.data() + row * row_bytes, row_bytes);
  });
  return call;
}

void Sublayers::run(const Machine& machine, const PackedLinear& linear, const float* x,
                    std::int64_t x_stride, float* y, std::int64_t y_stride, bool is_rectified,
                    const float* added) {
  if (rows_ == 0) return;
  const LinearCall whole = prepare(machine, linear, x, x_stride);
  const std::int64_t panels = linear.panels(), blocks = (rows_ + kRowBlock - 1) / kRowBlock;
  const std::int64_t work = std::min(rows_, kRowBlock) * linear.inputs() * kPanel;
  parallel_for(blocks * panels, machine.threads, kWorkPerThread / work, [&](std::int64_t task) {
    const std::int64_t first = task / panels * kRowBlock, panel = task % panels;
    LinearCall call = some_rows(whole, first, std::min(kRowBlock, rows_ - first));
    call.y = y + first * y_stride;
    call.y_stride = y_stride;
    call.is_rectified = is_rectified;
    if (added != nullptr) call.added = added + first * stride_;
    call.added_stride = stride_;
    machine.kernels->linear(call, panel, panel + 1);
  });
}

void Sublayers::multiply(const Machine& machine, const PackedLinear& linear, const float* x,
                         std::int64_t rows, float* y) {
  check_packed_for(machine, linear);
  rows_ = rows;
  make_room(x_scales_, rows);
  run(machine, linear, x, linear.inputs(), y, whole_panels(linear.outputs()), false, nullptr);
}

void Sublayers::normalise(const Machine& machine, const LayerNorm& norm, const float* x, float* y) {
  parallel_for(rows_, machine.threads, kWorkPerThread / (8 * model_.dim), [&](std::int64_t row) {
    machine.kernels->layer_norm(x + row * stride_, model_.dim, norm.gain.data(), norm.bias.data(),
                                norm.eps, y + row * stride_);
  });
}

void Sublayers::normalise_last(const Machine& machine, const LayerNorm& norm) {
  if (!norm.gain.empty()) normalise(machine, norm, x_.data(), x_.data());
}

const float* Sublayers::before(const Machine& machine, const LayerNorm& norm) {
  if (!model_.norm_first) return x_.data();
  normalise(machine, norm, x_.data(), y_.data());
  return y_.data();
}

// After a sublayer: y is x plus what the sublayer computed.
void Sublayers::after(const Machine& machine, const LayerNorm& norm) {
  if (model_.norm_first) {
    std::swap(x_, y_);
  } else {
    normalise(machine, norm, y_.data(), x_.data());
  }
}

const float* Sublayers::project(const Machine& machine, const Linear& linear,
                                const LayerNorm& norm) {
  const std::int64_t width = whole_panels(linear->outputs());
  make_room(wide_, rows_ * width);
  run(machine, *linear, before(machine, norm), stride_, wide_.data(), width, false, nullptr);
  return wide_.data();
}

void Sublayers::finish_attention(const Machine& machine, const AttentionLayer& layer) {
  const float* mixed = mixed_.data();
  std::int64_t mixed_stride = stride_;
  if (!layer.norm.gain.empty()) {
    norm::Problem problem;
    problem.outer = 1;
    problem.rows = rows_;
    problem.pieces = 1;
    problem.size = model_.dim;
    problem.input = mixed_.data();
    problem.strides = {0, stride_, 0};
    problem.gain = layer.norm.gain.data();
    problem.gate = layer.norm.gate.empty() ? nullptr : layer.norm.gate.data();
    problem.eps = layer.norm.eps;
    make_room(wide_, rows_ * model_.dim);
    norm::ForwardResult result;
    result.output = wide_.data();
    parallel_for(rows_, machine.threads, kWorkPerThread / (16 * model_.dim),
                 [&](std::int64_t row) {
                   machine.norm_kernels->forward(problem, result, row, row + 1);
                 });
    mixed = wide_.data();
    mixed_stride = model_.dim;
  }
  run(machine, *layer.output, mixed, mixed_stride, y_.data(), stride_, false, x_.data());
  after(machine, layer.residual_norm);
}

void Sublayers::feed_forward(const Machine& machine, const FeedForward& layer) {
  const std::int64_t width = row_stride(layer.inner->outputs());
  make_room(wide_, rows_ * width);
  run(machine, *layer.inner, before(machine, layer.residual_norm), stride_, wide_.data(), width,
      true, nullptr);
  run(machine, *layer.outer, wide_.data(), width, y_.data(), stride_, false, x_.data());
  after(machine, layer.residual_norm);
}

LinearCall some_rows(const LinearCall& all, std::int64_t first, std::int64_t count) {
  LinearCall call = all;
  call.rows = count;
  if (call.byte_x != nullptr) {
    call.byte_x += first * call.x_stride;
    call.x_scales += first;
  } else {
    call.x += first * call.x_stride;
  }
  return call;
}

AttendCall attend_call(const Model& model, const AttentionLayer& layer) {
  AttendCall call;
  call.heads = model.heads;
  call.head = model.dim / model.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(call.head));
  call.is_softmax = layer.is_softmax;
  call.thresholds = layer.thresholds.empty() ? nullptr : layer.thresholds.data();
  call.power = layer.power;
  call.length_exponent = layer.length_exponent;
  return call;
}

}  // namespace relakit::translate
