// Sparsemax and 1.5-entmax, both passes, against their definitions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"
#include "simplex/run.h"

namespace relakit::check {

namespace {

struct SimplexCase {
  std::int64_t rows, keys;
  bool is_squared;
  float sharpness;

  std::string name() const {
    return std::string(is_squared ? "1.5-entmax of " : "sparsemax of ") + std::to_string(rows) +
           " x " + std::to_string(keys) + " scores times " + std::to_string(sharpness);
  }
};

// The threshold by bisection, which needs no thought.
double threshold_of(const std::vector<double>& x, bool is_squared) {
  const double highest = *std::max_element(x.begin(), x.end());
  double low = highest - 1.0, high = highest;
  for (int step = 0; step < 200; step++) {
    const double middle = (low + high) / 2.0;
    double sum = 0.0;
    for (const double value : x) {
      const double r = std::max(0.0, value - middle);
      sum += is_squared ? r * r : r;
    }
    (sum > 1.0 ? low : high) = middle;
  }
  return (low + high) / 2.0;
}

void check_case(const std::string& isa, const SimplexCase& c, Random& random) {
  begin(isa, c.name());
  const auto count = static_cast<std::size_t>(c.rows * c.keys);
  std::vector<float> scores(count), upstream(count), weights(count), gradient(count);
  for (float& x : scores) x = c.sharpness * random.uniform();
  for (float& x : upstream) x = random.uniform();
  for (std::int64_t key = 0; key < c.keys; key++) {
    scores[static_cast<std::size_t>(key)] = -std::numeric_limits<float>::infinity();  // a null row
  }
  const simplex::Problem p{c.rows, c.keys, c.is_squared};
  simplex::run_forward(isa, 2, p, {scores.data(), weights.data()});
  simplex::run_backward(isa, 2, p, {weights.data(), upstream.data(), gradient.data()});

  std::vector<double> expected(static_cast<std::size_t>(c.keys)), expected_gradient(expected);
  for (std::int64_t row = 1; row < c.rows; row++) {
    const std::int64_t first = row * c.keys;
    std::vector<double> x;
    for (std::int64_t key = 0; key < c.keys; key++) {
      x.push_back(scores[static_cast<std::size_t>(first + key)] * (c.is_squared ? 0.5 : 1.0));
    }
    const double threshold = threshold_of(x, c.is_squared);
    double total = 0.0, products = 0.0;
    std::vector<double> slopes;
    for (std::int64_t key = 0; key < c.keys; key++) {
      const double r = std::max(0.0, x[static_cast<std::size_t>(key)] - threshold);
      expected.push_back(c.is_squared ? r * r : r);
      // As the kernels saw it: at the threshold itself both answers are right.
      const bool is_kept = weights[static_cast<std::size_t>(first + key)] > 0.0f;
      slopes.push_back(c.is_squared ? r : static_cast<double>(is_kept));
      total += slopes.back();
      products += slopes.back() * upstream[static_cast<std::size_t>(first + key)];
    }
    for (std::int64_t key = 0; key < c.keys; key++) {
      const double above = upstream[static_cast<std::size_t>(first + key)] - products / total;
      expected_gradient.push_back(slopes[static_cast<std::size_t>(key)] * above);
    }
  }
  expect_near("weights", as_doubles(weights), expected, 4e-6);
  expect_near("gradient of the scores", as_doubles(gradient), expected_gradient, 4e-6);
}

}  // namespace

void check_simplex(const std::string& isa) {
  Random random(5);
  for (std::int64_t keys : {1, 3, 8, 13, 16, 31, 64, 100}) {
    for (bool is_squared : {false, true}) {
      for (float sharpness : {0.1f, 1.0f, 20.0f}) {
        check_case(isa, {5, keys, is_squared, sharpness}, random);
      }
    }
  }
  check_case(isa, {700, 40, true, 2.0f}, random);  // enough for two threads
}

}  // namespace relakit::check
