// A translator's attention to the rows of a beam's ancestors, with softmax and relu.

#include <algorithm>
#include <cmath>

#include "check.h"
#include "translate/kernels.h"

namespace relakit::check {

namespace {

using translate::AttendCall;
using translate::kPanel;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

struct AttendCase {
  std::int64_t count, heads, head;
  bool is_softmax;
  float threshold, power, length_exponent;

  std::string name() const {
    return "attend to " + std::to_string(count) + " in " + std::to_string(heads) + " heads of " +
           std::to_string(head) + (is_softmax ? ", softmax" : ", relu to the power ") +
           (is_softmax ? "" : std::to_string(power));
  }
};

// The weights of one head's scores.
std::vector<double> weigh(const AttendCase& c, std::vector<double> scores) {
  if (c.is_softmax) {
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (double score : scores) sum += std::exp(score - largest);
    for (double& score : scores) score = std::exp(score - largest) / sum;
    return scores;
  }
  const double divisor = std::pow(static_cast<double>(c.count), c.length_exponent);
  for (double& score : scores) {
    const double above = score - c.threshold;
    score = above <= 0.0 ? 0.0 : std::pow(above, c.power) / divisor;
  }
  return scores;
}

std::vector<double> reference(const AttendCase& c, const AttendCall& call) {
  std::vector<double> output(size(c.heads * c.head));
  for (std::int64_t h = 0; h < c.heads; h++) {
    const auto row = [&](std::int64_t i) { return call.rows + call.places[i] * call.row_stride; };
    std::vector<double> scores;
    for (std::int64_t i = 0; i < c.count; i++) {
      double sum = 0.0;
      for (std::int64_t p = h * c.head; p < (h + 1) * c.head; p++) {
        sum += static_cast<double>(call.query[p]) * row(i)[p];
      }
      scores.push_back(call.scale * sum);
    }
    const std::vector<double> weights = weigh(c, scores);
    for (std::int64_t i = 0; i < c.count; i++) {
      for (std::int64_t p = h * c.head; p < (h + 1) * c.head; p++) {
        output[size(p)] += weights[size(i)] * row(i)[c.heads * c.head + p];
      }
    }
  }
  return output;
}

void check_case(const std::string& isa, const AttendCase& c, Random& random) {
  begin(isa, c.name());
  const std::int64_t features = c.heads * c.head, rows = 2 * c.count;
  std::vector<float> query(size(features)), keys_and_values(size(rows * 2 * features));
  for (float& x : query) x = random.uniform();
  for (float& x : keys_and_values) x = random.uniform();
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < c.count; i++) {
    places.push_back(static_cast<std::int32_t>(random.between(0, rows - 1)));
  }
  const std::vector<float> thresholds(size(c.heads), c.threshold);
  std::vector<float> output(size(features)), scratch(size(2 * (c.count + kPanel)));
  AttendCall call;
  call.query = query.data();
  call.rows = keys_and_values.data();
  call.row_stride = 2 * features;
  call.places = places.data();
  call.count = c.count;
  call.heads = c.heads;
  call.head = c.head;
  call.scale = 0.5f;
  call.is_softmax = c.is_softmax;
  call.thresholds = c.threshold == 0.0f ? nullptr : thresholds.data();
  call.power = c.power;
  call.length_exponent = c.length_exponent;
  call.output = output.data();
  call.scratch = scratch.data();
  translate::find_kernels(isa).attend(call);
  expect_near("output", as_doubles(output), reference(c, call), 2e-6);
}

}  // namespace

void check_attend(const std::string& isa) {
  Random random(4);
  for (std::int64_t count : {1, 2, 7, 16, 33}) {
    for (std::int64_t head : {1, 5, 8, 16, 40, 64}) {
      check_case(isa, {count, 2, head, true, 0.0f, 1.0f, 0.0f}, random);
      for (float power : {1.0f, 2.0f, 1.5f}) {
        check_case(isa, {count, 3, head, false, 0.0f, power, 0.0f}, random);
        check_case(isa, {count, 1, head, false, 0.3f, power, 0.5f}, random);
      }
    }
  }
}

}  // namespace relakit::check
