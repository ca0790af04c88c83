// RMSNorm, gated or not, both passes, against the plain formula.

#include <cmath>

#include "check.h"
#include "cpu/bfloat16.h"
#include "norm/run.h"

namespace relakit::check {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

struct NormCase {
  std::int64_t outer, rows, pieces, size;
  bool is_gated, is_bfloat16;

  std::int64_t row_count() const { return outer * rows; }
  std::int64_t features() const { return pieces * size; }
  std::string name() const {
    return "norm " + std::to_string(outer) + " x " + std::to_string(rows) + " rows of " +
           std::to_string(pieces) + " x " + std::to_string(size) + (is_gated ? ", gated" : "") +
           (is_bfloat16 ? ", bfloat16" : "");
  }
};

// Numbers in float32 or bfloat16.
class Numbers {
 public:
  Numbers(std::int64_t count, bool is_bfloat16)
      : halves_(is_bfloat16 ? size(count) : 0), floats_(is_bfloat16 ? 0 : size(count)) {}

  void fill(Random& random) {
    for (float& x : floats_) x = 2.0f * random.uniform();
    for (std::uint16_t& x : halves_) x = bfloat16_from_float(2.0f * random.uniform());
  }
  void* data() { return halves_.empty() ? static_cast<void*>(floats_.data()) : halves_.data(); }
  double operator[](std::int64_t i) const {
    return halves_.empty() ? floats_[size(i)] : bfloat16_to_float(halves_[size(i)]);
  }

 private:
  std::vector<std::uint16_t> halves_;
  std::vector<float> floats_;
};

constexpr float kEps = 1e-5f;

struct NormReference {
  std::vector<double> output, grad_input, grad_gain, grad_gate;

  // Inputs are [outer, pieces, rows, size], all else is [outer, rows, features].
  NormReference(const NormCase& c, const Numbers& input, const Numbers& upstream,
                const std::vector<float>& gain, const std::vector<float>& gate)
      : grad_input(size(c.row_count() * c.features())),
        grad_gain(size(c.features())),
        grad_gate(size(c.is_gated ? c.features() : 0)) {
    for (std::int64_t row = 0; row < c.row_count(); row++) {
      const auto place = [&](std::int64_t j) {
        const std::int64_t piece = row / c.rows * c.pieces + j / c.size;
        return (piece * c.rows + row % c.rows) * c.size + j % c.size;
      };
      double squares = 0.0;
      for (std::int64_t j = 0; j < c.features(); j++) squares += input[place(j)] * input[place(j)];
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(c.features()) + kEps);
      double products = 0.0;
      std::vector<double> through_norm(size(c.features())), through_gate(through_norm);
      for (std::int64_t j = 0; j < c.features(); j++) {
        const double x = input[place(j)], n = x * scale, g = gain[size(j)];
        const double s = c.is_gated ? 1.0 / (1.0 + std::exp(-x * gate[size(j)])) : 1.0;
        const double dy = upstream[row * c.features() + j];
        output.push_back(s * n * g);
        grad_gain[size(j)] += dy * s * n;
        if (c.is_gated) {
          const double slope = dy * n * g * s * (1.0 - s);
          grad_gate[size(j)] += slope * x;
          through_gate[size(j)] = slope * gate[size(j)];
        }
        through_norm[size(j)] = dy * s * g;
        products += dy * s * g * n;
      }
      const double mean = products / static_cast<double>(c.features());
      for (std::int64_t j = 0; j < c.features(); j++) {
        grad_input[size(place(j))] = (through_norm[size(j)] - mean * input[place(j)] * scale) * scale +
                                     through_gate[size(j)];
      }
    }
  }
};

std::vector<double> all(const Numbers& numbers, std::int64_t count) {
  std::vector<double> found;
  for (std::int64_t i = 0; i < count; i++) found.push_back(numbers[i]);
  return found;
}

void check_case(const std::string& isa, const NormCase& c, Random& random) {
  begin(isa, c.name());
  const std::int64_t count = c.row_count() * c.features();
  Numbers input(count, c.is_bfloat16), output(count, c.is_bfloat16);
  Numbers upstream(count, c.is_bfloat16), grad_input(count, c.is_bfloat16);
  input.fill(random);
  upstream.fill(random);
  std::vector<float> gain(size(c.features())), gate(gain), inverse_rms(size(c.row_count()));
  for (float& x : gain) x = 1.0f + random.uniform();
  for (float& x : gate) x = 4.0f * random.uniform();

  norm::Call call;
  call.problem.outer = c.outer;
  call.problem.rows = c.rows;
  call.problem.pieces = c.pieces;
  call.problem.size = c.size;
  call.problem.is_bfloat16 = c.is_bfloat16;
  call.problem.input = input.data();
  call.problem.strides = {c.pieces * c.rows * c.size, c.size, c.rows * c.size};
  call.problem.eps = kEps;
  call.gain = {gain.data(), false};
  if (c.is_gated) call.gate = {gate.data(), false};
  norm::run_forward(isa, 2, call, {output.data(), inverse_rms.data()});

  std::vector<float> grad_gain(gain), grad_gate(c.is_gated ? gain.size() : 0);
  norm::BackwardResult result;
  result.grad_output = upstream.data();
  result.grad_output_strides = {c.rows * c.features(), c.features(), c.size};
  result.inverse_rms = inverse_rms.data();
  result.grad_input = grad_input.data();
  result.grad_input_strides = call.problem.strides;
  norm::run_backward(isa, 2, call, result, {grad_gain.data(), false},
                     {c.is_gated ? grad_gate.data() : nullptr, false});

  const NormReference expected(c, input, upstream, gain, gate);
  const double tolerance = c.is_bfloat16 ? 8e-3 : 2e-6;
  expect_near("output", all(output, count), expected.output, tolerance);
  expect_near("gradient of the input", all(grad_input, count), expected.grad_input, tolerance);
  expect_near("gradient of the gain", as_doubles(grad_gain), expected.grad_gain, 2e-6);
  expect_near("gradient of the gate", as_doubles(grad_gate), expected.grad_gate, 2e-6);
}

}  // namespace

void check_norm(const std::string& isa) {
  Random random(2);
  for (std::int64_t features : {1, 3, 8, 13, 16, 31, 64, 100}) {
    for (bool is_gated : {false, true}) {
      for (bool is_bfloat16 : {false, true}) {
        check_case(isa, {1, 3, 1, features, is_gated, is_bfloat16}, random);
        check_case(isa, {2, 5, 3, features, is_gated, is_bfloat16}, random);
      }
    }
  }
  check_case(isa, {2, 70, 4, 16, true, false}, random);  // more than one block of rows
}

}  // namespace relakit::check
