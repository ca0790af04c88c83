#include "attention_case.h"

#include <cmath>

#include "cpu/bfloat16.h"

namespace relakit::check {

namespace {

constexpr float kUntouched = 77.0f;

}  // namespace

Heads::Heads(std::int64_t batch_, std::int64_t heads_, std::int64_t rows_, std::int64_t size_,
             DType dtype, Layout layout)
    : batch(batch_), heads(heads_), rows(rows_), size(size_), dtype_(dtype) {
  if (layout == Layout::heads_inside) {  // [batch, rows, heads, size], as after a projection
    head_stride_ = size;
    row_stride_ = heads * size;
    batch_stride_ = rows * row_stride_;
  } else {
    row_stride_ = layout == Layout::with_gaps ? size + 3 : size;
    head_stride_ = rows * row_stride_;
    batch_stride_ = heads * head_stride_;
  }
  const auto count = static_cast<std::size_t>(batch * batch_stride_);
  if (is_bfloat16()) {
    halves_.assign(count, bfloat16_from_float(kUntouched));
  } else {
    floats_.assign(count, kUntouched);
  }
}

std::size_t Heads::place(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p) const {
  return static_cast<std::size_t>(b * batch_stride_ + h * head_stride_ + i * row_stride_ + p);
}

void Heads::fill(Random& random) {
  for (std::int64_t b = 0; b < batch; b++) {
    for (std::int64_t h = 0; h < heads; h++) {
      for (std::int64_t i = 0; i < rows; i++) {
        for (std::int64_t p = 0; p < size; p++) set(b, h, i, p, random.grid());
      }
    }
  }
}

void Heads::set(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p, float x) {
  if (is_bfloat16()) {
    halves_[place(b, h, i, p)] = bfloat16_from_float(x);
  } else {
    floats_[place(b, h, i, p)] = x;
  }
}

double Heads::at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p) const {
  const std::size_t where = place(b, h, i, p);
  return is_bfloat16() ? bfloat16_to_float(halves_[where]) : floats_[where];
}

std::vector<double> Heads::all() const {
  std::vector<double> numbers;
  for (std::int64_t b = 0; b < batch; b++) {
    for (std::int64_t h = 0; h < heads; h++) {
      for (std::int64_t i = 0; i < rows; i++) {
        for (std::int64_t p = 0; p < size; p++) numbers.push_back(at(b, h, i, p));
      }
    }
  }
  return numbers;
}

attention::View Heads::view() const {
  const void* data = is_bfloat16() ? static_cast<const void*>(halves_.data()) : floats_.data();
  return {data, batch_stride_, head_stride_, row_stride_};
}

attention::Target Heads::target() {
  void* data = is_bfloat16() ? static_cast<void*>(halves_.data()) : floats_.data();
  return {data, batch_stride_, head_stride_, row_stride_};
}

bool Heads::are_gaps_untouched() const {
  if (row_stride_ != size + 3) return true;
  for (std::int64_t row = 0; row < batch * heads * rows; row++) {
    for (std::int64_t p = size; p < row_stride_; p++) {
      const auto where = static_cast<std::size_t>(row * row_stride_ + p);
      const float x = is_bfloat16() ? bfloat16_to_float(halves_[where]) : floats_[where];
      if (x != kUntouched) return false;
    }
  }
  return true;
}

std::string AttentionCase::name() const {
  const auto n = [](std::int64_t x) { return std::to_string(x) + " "; };
  return "attention " + n(batch) + n(heads) + n(key_heads) + n(queries) + n(keys) + n(dim) +
         n(value_dim) + (dtype == DType::bf16 ? "bfloat16" : "float32") + " layout " +
         n(static_cast<int>(layout)) + "mask " + n(static_cast<int>(mask)) +
         (has_mask_per_query ? "per query " : "") + (is_mask_contiguous ? "" : "with gaps ") +
         (last_diagonal < attention::kUnlimited ? "to " + n(last_diagonal) : "") +
         (first_diagonal > -attention::kUnlimited ? "from " + n(first_diagonal) : "") +
         "threshold " + std::to_string(threshold) + " power " + n(power) + "dropout " +
         std::to_string(dropout);
}

AttentionInputs::AttentionInputs(const AttentionCase& wanted, std::uint64_t seed)
    : call(wanted),
      query(wanted.batch, wanted.heads, wanted.queries, wanted.dim, wanted.dtype, wanted.layout),
      key(wanted.batch, wanted.key_heads, wanted.keys, wanted.dim, wanted.dtype, wanted.layout),
      value(wanted.batch, wanted.key_heads, wanted.keys, wanted.value_dim, wanted.dtype,
            wanted.layout),
      grad_output(wanted.batch, wanted.heads, wanted.queries, wanted.value_dim, wanted.dtype,
                  wanted.layout),
      mask_step_(wanted.is_mask_contiguous ? 1 : 2) {
  Random random(seed);
  for (Heads* numbers : {&query, &key, &value, &grad_output}) numbers->fill(random);
  for (std::int64_t h = 0; h < call.heads; h++) {
    thresholds.push_back(call.threshold + (call.threshold == 0.0f ? 0.0f : random.grid() / 4));
  }
  const auto count = static_cast<std::size_t>(
      call.batch * (call.has_mask_per_query ? call.queries : 1) * call.keys * mask_step_);
  for (std::size_t i = 0; i < count; i++) {
    const bool is_shown = random.between(0, 3) != 0;
    shown_.push_back(static_cast<std::uint8_t>(is_shown));
    bias_.push_back(is_shown ? random.grid() : -HUGE_VALF);
    bias_halves_.push_back(bfloat16_from_float(bias_.back()));
  }
}

std::size_t AttentionInputs::mask_place(std::int64_t b, std::int64_t i, std::int64_t j) const {
  const std::int64_t row = call.has_mask_per_query ? b * call.queries + i : b;
  return static_cast<std::size_t>((row * call.keys + j) * mask_step_);
}

bool AttentionInputs::shows(std::int64_t b, std::int64_t i, std::int64_t j) const {
  if (j < i + call.first_diagonal || j > i + call.last_diagonal) return false;
  return call.mask == Mask::Kind::none || shown_[mask_place(b, i, j)] != 0;
}

double AttentionInputs::bias(std::int64_t b, std::int64_t i, std::int64_t j) const {
  const bool is_added = call.mask == Mask::Kind::additive || call.mask == Mask::Kind::additive_bf16;
  return is_added ? bias_[mask_place(b, i, j)] : 0.0;
}

attention::Problem AttentionInputs::problem() const {
  attention::Problem p;
  p.batch = call.batch;
  p.heads = call.heads;
  p.key_heads = call.key_heads;
  p.queries = p.rows_per_head = call.queries;
  p.keys = p.bits_per_row = call.keys;
  p.dim = call.dim;
  p.value_dim = call.value_dim;
  p.dtype = call.dtype;
  p.query = query.view();
  p.key = key.view();
  p.value = value.view();
  p.mask.kind = call.mask;
  p.mask.data = call.mask == Mask::Kind::none       ? nullptr
                : call.mask == Mask::Kind::boolean  ? static_cast<const void*>(shown_.data())
                : call.mask == Mask::Kind::additive ? static_cast<const void*>(bias_.data())
                                                    : bias_halves_.data();
  p.mask.column = mask_step_;
  p.mask.row = call.has_mask_per_query ? call.keys * mask_step_ : 0;
  p.mask.batch = (call.has_mask_per_query ? call.queries : 1) * call.keys * mask_step_;
  p.first_diagonal = call.first_diagonal;
  p.last_diagonal = call.last_diagonal;
  p.scale = call.scale;
  p.threshold = thresholds.data();
  p.power = call.power;
  p.dropout = call.dropout;
  p.seed = kSeed;
  return p;
}

}  // namespace relakit::check
