#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace relakit::check {

namespace {

std::string current;
std::int64_t made = 0, failed = 0;
double tolerance_factor = 1.0;
constexpr std::int64_t kMostFailures = 20;

void report(const char* what, const std::string& how) {
  std::printf("%s: %s %s\n", current.c_str(), what, how.c_str());
  if (++failed < kMostFailures) return;
  std::printf("stopped after %lld differences\n", static_cast<long long>(failed));
  std::exit(1);
}

}  // namespace

std::uint64_t Random::bits() {  // SplitMix64
  std::uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>((bits() >> 33) % static_cast<std::uint64_t>(high - low + 1));
}

float Random::uniform() {
  return static_cast<float>(static_cast<std::int32_t>(bits() >> 40) - (1 << 23)) / (1 << 23);
}

void begin(const std::string& isa, const std::string& what) { current = isa + ", " + what; }

void expect(bool holds, const char* what) {
  made++;
  if (!holds) report(what, "does not hold");
}

void expect_near(const char* what, const std::vector<double>& actual,
                 const std::vector<double>& expected, double tolerance) {
  made++;
  if (actual.size() != expected.size()) {
    report(what, "has " + std::to_string(actual.size()) + " numbers, expected are " +
                     std::to_string(expected.size()));
    return;
  }
  double scale = 1.0;
  for (double x : expected) {
    if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
  }
  for (std::size_t i = 0; i < expected.size(); i++) {
    const double x = actual[i], y = expected[i];
    const bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    if (is_same || std::fabs(x - y) <= tolerance_factor * tolerance * scale) continue;
    report(what, "is " + std::to_string(x) + " at " + std::to_string(i) + " of " +
                     std::to_string(expected.size()) + ", expected is " + std::to_string(y));
    return;
  }
}

void set_tolerance(double factor) { tolerance_factor = factor; }

std::int64_t comparisons() { return made; }
std::int64_t failures() { return failed; }

}  // namespace relakit::check
