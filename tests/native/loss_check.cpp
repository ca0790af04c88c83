// Label-smoothed cross-entropy and its gradient against the plain formula.

#include <cmath>

#include "check.h"
#include "cpu/bfloat16.h"
#include "loss/run.h"

namespace relakit::check {

namespace {

void check_case(const std::string& isa, std::int64_t rows, std::int64_t vocabulary,
                bool is_bfloat16, bool has_shares, float offset, Random& random) {
  begin(isa, "loss of " + std::to_string(rows) + " x " + std::to_string(vocabulary) + " logits" +
                 (is_bfloat16 ? ", bfloat16" : "") + (has_shares ? ", with shares" : ""));
  const auto count = static_cast<std::size_t>(rows * vocabulary);
  std::vector<float> logits(count), shares(static_cast<std::size_t>(rows), 1.0f);
  std::vector<std::uint16_t> halves(count);
  std::vector<std::int64_t> targets(shares.size());
  for (std::size_t i = 0; i < count; i++) {
    halves[i] = bfloat16_from_float(offset + 8.0f * random.uniform());
    logits[i] = bfloat16_to_float(halves[i]);
  }
  for (std::int64_t& target : targets) target = random.between(0, vocabulary - 1);
  if (has_shares) {
    for (float& share : shares) share = 1.0f + random.uniform();
  }
  constexpr double kSmoothing = 0.125;

  std::vector<double> expected, expected_gradient;
  for (std::size_t row = 0; row < targets.size(); row++) {
    const float* x = logits.data() + row * static_cast<std::size_t>(vocabulary);
    const auto target = static_cast<std::size_t>(targets[row]);
    double total = 0.0, sum = 0.0;
    for (std::int64_t j = 0; j < vocabulary; j++) {
      total += std::exp(static_cast<double>(x[j] - offset));
      sum += x[j] - offset;
    }
    const double log_total = std::log(total), mean = sum / static_cast<double>(vocabulary);
    expected.push_back(log_total - (1.0 - kSmoothing) * (x[target] - offset) - kSmoothing * mean);
    expected.push_back(log_total - (x[target] - offset));
    for (std::int64_t j = 0; j < vocabulary; j++) {
      double gradient = std::exp(static_cast<double>(x[j] - offset)) / total;
      gradient -= kSmoothing / static_cast<double>(vocabulary);
      if (j == targets[row]) gradient -= 1.0 - kSmoothing;
      expected_gradient.push_back(gradient * static_cast<double>(shares[row]));
    }
  }

  std::vector<loss::Losses> losses(targets.size());
  loss::Problem p;
  p.rows = rows;
  p.vocabulary = vocabulary;
  p.is_bfloat16 = is_bfloat16;
  p.logits = is_bfloat16 ? static_cast<const void*>(halves.data()) : logits.data();
  p.targets = targets.data();
  p.shares = has_shares ? shares.data() : nullptr;
  p.smoothing = static_cast<float>(kSmoothing);
  loss::Result result;
  result.losses = losses.data();
  result.gradient = is_bfloat16 ? static_cast<void*>(halves.data()) : logits.data();
  loss::run(isa, 2, p, result);
  std::vector<double> found;
  for (const loss::Losses& one : losses) {
    found.push_back(one.smoothed);
    found.push_back(one.negative_log_likelihood);
  }
  if (is_bfloat16) {
    for (std::size_t i = 0; i < count; i++) logits[i] = bfloat16_to_float(halves[i]);
  }
  expect_near("losses", found, expected, 2e-6);
  expect_near("gradient", as_doubles(logits), expected_gradient, is_bfloat16 ? 8e-3 : 2e-6);
}

}  // namespace

void check_loss(const std::string& isa) {
  Random random(6);
  for (std::int64_t vocabulary : {1, 3, 8, 13, 16, 31, 64, 100}) {
    for (bool is_bfloat16 : {false, true}) {
      for (bool has_shares : {false, true}) {
        check_case(isa, 3, vocabulary, is_bfloat16, has_shares, 0.0f, random);
      }
    }
  }
  check_case(isa, 21, 1000, true, true, 0.0f, random);  // more than one block of rows
  check_case(isa, 3, 1000, false, false, 1024.0f, random);  // sums must not lose what differs
}

}  // namespace relakit::check
