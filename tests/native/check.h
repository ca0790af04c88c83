#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What all checks share: numbers at random, and comparisons that are counted.

namespace relakit::check {

// The same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits();
  // From low up to and including high.
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool coin() { return between(0, 1) == 1; }
  // A multiple of 1/4 from -1 to 1: products and short sums of these are exact in float32.
  float grid() { return static_cast<float>(between(-4, 4)) / 4.0f; }
  // Between -1 and 1.
  float uniform();

  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

// What is compared now, for messages: the instruction set and the case.
void begin(const std::string& isa, const std::string& what);

// Count a comparison, and print it if it does not hold.
void expect(bool holds, const char* what);

// All numbers are as close as `tolerance` allows, times the largest of those expected (or 1). NaN is expected
// where NaN is.
void expect_near(const char* what, const std::vector<double>& actual,
                 const std::vector<double>& expected, double tolerance);

// Multiply all tolerances: with 0, sums in another order are differences.
void set_tolerance(double factor);

std::int64_t comparisons();
std::int64_t failures();

// One for each family, for an instruction set that is usable here.
void check_attention(const std::string& isa);
void check_loss(const std::string& isa);
void check_norm(const std::string& isa);
void check_simplex(const std::string& isa);
void check_translate(const std::string& isa);
void check_attend(const std::string& isa);
// What is the same for all instruction sets.
void check_kept_memory();
void check_threads();

template <class T>
std::vector<double> as_doubles(const T* numbers, std::int64_t count) {
  return std::vector<double>(numbers, numbers + count);
}
template <class T>
std::vector<double> as_doubles(const std::vector<T>& numbers) {
  return std::vector<double>(numbers.begin(), numbers.end());
}

}  // namespace relakit::check
