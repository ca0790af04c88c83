#include <cmath>

#include "attention/random.h"
#include "attention_case.h"

namespace relakit::check {

namespace {

// What dropout makes of a weight of 1.
double kept(const AttentionCase& c, std::int64_t row, std::int64_t key) {
  if (c.dropout == 0.0f) return 1.0;
  const auto below = static_cast<std::uint64_t>((1.0 - c.dropout) * 4294967296.0);
  const std::uint32_t drawn = attention::random_bits(
      AttentionInputs::kSeed, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(key));
  return drawn < below ? 1.0 / (1.0 - c.dropout) : 0.0;
}

double dot(const Heads& x, std::int64_t b, std::int64_t h, std::int64_t i, const Heads& y,
           std::int64_t key_head, std::int64_t j) {
  double sum = 0.0;
  for (std::int64_t p = 0; p < x.size; p++) sum += x.at(b, h, i, p) * y.at(b, key_head, j, p);
  return sum;
}

// sums[p] += factor * the numbers of a row.
void add(double* sums, double factor, const Heads& x, std::int64_t b, std::int64_t h,
         std::int64_t i) {
  for (std::int64_t p = 0; p < x.size; p++) sums[p] += factor * x.at(b, h, i, p);
}

}  // namespace

AttentionReference::AttentionReference(const AttentionInputs& in) {
  const AttentionCase& c = in.call;
  const std::int64_t rows = c.batch * c.heads * c.queries, keys = c.batch * c.key_heads * c.keys;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  output.resize(size(rows * c.value_dim));
  grad_query.resize(size(rows * c.dim));
  grad_key.resize(size(keys * c.dim));
  grad_value.resize(size(keys * c.value_dim));
  row_sums.resize(size(rows));
  row_counts.resize(size(rows));
  grad_rows.resize(size(rows));
  for (std::int64_t row = 0; row < rows; row++) {
    const std::int64_t b = row / (c.heads * c.queries), h = row / c.queries % c.heads;
    const std::int64_t i = row % c.queries, key_head = h / (c.heads / c.key_heads);
    for (std::int64_t j = 0; j < c.keys; j++) {
      const bool is_shown = in.shows(b, h, i, j);
      const double product = dot(in.query, b, h, i, in.key, key_head, j);
      const double score =
          is_shown ? c.scale * product + in.bias(b, h, i, j) - in.thresholds[size(h)] : 0.0;
      const bool is_above = !(score <= 0.0);  // NaN is
      const double rectified = is_above ? score : 0.0, factor = kept(c, row, j);
      const double weight = (c.power == 2 ? rectified * rectified : rectified) * factor;
      above.push_back(is_above);
      weights.push_back(weight);
      row_sums[size(row)] += weight;
      row_counts[size(row)] += weight != 0.0;
      add(&output[size(row * c.value_dim)], weight, in.value, b, key_head, j);

      const double upstream = dot(in.grad_output, b, h, i, in.value, key_head, j);
      const double slope = (c.power == 2 ? 2.0 * rectified : 1.0) * factor;
      const double gradient = is_above ? upstream * slope : 0.0;
      const std::int64_t key_row = (b * c.key_heads + key_head) * c.keys + j;
      grad_rows[size(row)] += gradient;
      add(&grad_query[size(row * c.dim)], gradient * c.scale, in.key, b, key_head, j);
      add(&grad_key[size(key_row * c.dim)], gradient * c.scale, in.query, b, h, i);
      add(&grad_value[size(key_row * c.value_dim)], weight, in.grad_output, b, h, i);
    }
  }
}

}  // namespace relakit::check
