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

// Rows of [batch, heads, rows, size], in float64.
struct Rows {
  explicit Rows(const Heads& x) : numbers(x.all()), size(x.size) {}
  const double* operator[](std::int64_t row) const { return numbers.data() + row * size; }

  std::vector<double> numbers;
  std::int64_t size;
};

double dot(const double* x, const double* y, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t p = 0; p < count; p++) sum += x[p] * y[p];
  return sum;
}

// sums += factor * x
void add(std::vector<double>& sums, std::int64_t row, double factor, const double* x,
         std::int64_t count) {
  double* mine = sums.data() + row * count;
  for (std::int64_t p = 0; p < count; p++) mine[p] += factor * x[p];
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
  const Rows query(in.query), key(in.key), value(in.value), upstream(in.grad_output);
  for (std::int64_t row = 0; row < rows; row++) {
    const std::int64_t b = row / (c.heads * c.queries), h = row / c.queries % c.heads;
    const std::int64_t i = row % c.queries, key_head = h / (c.heads / c.key_heads);
    for (std::int64_t j = 0; j < c.keys; j++) {
      const std::int64_t key_row = (b * c.key_heads + key_head) * c.keys + j;
      double score = 0.0;
      if (in.shows(b, i, j)) {
        score = c.scale * dot(query[row], key[key_row], c.dim) + in.bias(b, i, j) -
                in.thresholds[size(h)];
      }
      const bool is_above = !(score <= 0.0);  // NaN is
      const double rectified = is_above ? score : 0.0, factor = kept(c, row, j);
      const double weight = (c.power == 2 ? rectified * rectified : rectified) * factor;
      above.push_back(is_above);
      weights.push_back(weight);
      row_sums[size(row)] += weight;
      row_counts[size(row)] += weight != 0.0;
      add(output, row, weight, value[key_row], c.value_dim);

      const double slope = (c.power == 2 ? 2.0 * rectified : 1.0) * factor;
      const double gradient =
          is_above ? slope * dot(upstream[row], value[key_row], c.value_dim) : 0.0;
      grad_rows[size(row)] += gradient;
      add(grad_query, row, gradient * c.scale, key[key_row], c.dim);
      add(grad_key, key_row, gradient * c.scale, query[row], c.dim);
      add(grad_value, key_row, weight, upstream[row], c.value_dim);
    }
  }
}

}  // namespace relakit::check
