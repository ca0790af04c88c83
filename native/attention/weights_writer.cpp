#include "attention/weights_writer.h"

#include "cpu/bfloat16.h"

namespace relakit::attention {

WeightsWriter::~WeightsWriter() = default;

DenseWeights::DenseWeights(void* data, DType dtype, std::int64_t keys)
    : data_(data), dtype_(dtype), keys_(keys) {}

void DenseWeights::add(std::int64_t row, std::int64_t first_key, const std::uint8_t* positions,
                       const float* weights, int count) {
  const std::int64_t start = row * keys_ + first_key;
  for (int t = 0; t < count; t++) {
    if (dtype_ == DType::bf16) {
      from_float(weights[t], static_cast<std::uint16_t*>(data_)[start + positions[t]]);
    } else {
      static_cast<float*>(data_)[start + positions[t]] = weights[t];
    }
  }
}

SparseWeights::SparseWeights(std::int64_t rows) : rows_(static_cast<std::size_t>(rows)) {}

void SparseWeights::add(std::int64_t row, std::int64_t first_key, const std::uint8_t* positions,
                        const float* weights, int count) {
  auto& entries = rows_[static_cast<std::size_t>(row)];
  for (int t = 0; t < count; t++) {
    // Dropped weights are 0.
    if (weights[t] != 0.0f) entries.push_back({first_key + positions[t], weights[t]});
  }
}

std::int64_t SparseWeights::size() const {
  std::size_t size = 0;
  for (const auto& entries : rows_) size += entries.size();
  return static_cast<std::int64_t>(size);
}

void SparseWeights::write(std::int64_t* starts, std::int64_t* columns, float* weights) const {
  std::int64_t next = 0;
  for (const auto& entries : rows_) {
    *starts++ = next;
    for (const Entry& entry : entries) {
      columns[next] = entry.column;
      weights[next] = entry.weight;
      next++;
    }
  }
  *starts = next;
}

}  // namespace relakit::attention
