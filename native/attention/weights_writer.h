#pragma once

#include <cstdint>
#include <vector>

#include "attention/problem.h"

namespace relakit::attention {

// Weights as one matrix of [rows, keys], which must be zero at first.
class DenseWeights : public WeightsWriter {
 public:
  DenseWeights(void* data, DType dtype, std::int64_t keys);
  void add(std::int64_t row, std::int64_t first_key, const std::uint8_t* positions,
           const float* weights, int count) override;

 private:
  void* data_;
  DType dtype_;
  std::int64_t keys_;
};

// Weights as compressed sparse rows.
class SparseWeights : public WeightsWriter {
 public:
  explicit SparseWeights(std::int64_t rows);
  void add(std::int64_t row, std::int64_t first_key, const std::uint8_t* positions,
           const float* weights, int count) override;

  std::int64_t size() const;
  // starts: [rows + 1], columns and weights: [size].
  void write(std::int64_t* starts, std::int64_t* columns, float* weights) const;

 private:
  struct Entry {
    std::int64_t column;
    float weight;
  };
  std::vector<std::vector<Entry>> rows_;
};

}  // namespace relakit::attention
