// Attention: forward with few and many queries, backward with and without the bits of forward, on random
// cases, against the plain formula and against the portable kernels.

#include <cmath>
#include <cstring>

#include "attention/kernels.h"
#include "attention/weights_writer.h"
#include "attention_case.h"
#include "cpu/features.h"

namespace relakit::attention {
extern const Kernels portable_pairs_kernels;  // kernels_portable_pairs.cpp
}

namespace relakit::check {

namespace {

using attention::BackwardJob;
using attention::ForwardJob;
using attention::Kernels;
using attention::kUnlimited;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool has_pairs() {
#if defined(RELAKIT_WITH_AVX512_BF16)
  return has_cpu_features({"avx512_vbmi2", "avx512_bf16"});
#else
  return false;
#endif
}

// All kernels of an instruction set that this processor can run. The best come first.
struct Variant {
  std::string name;
  const Kernels& kernels;
};
std::vector<Variant> variants_of(const std::string& isa) {
  std::vector<Variant> variants;
#if defined(RELAKIT_WITH_AVX512)
  if (isa == "avx512") {
#if defined(RELAKIT_WITH_AVX512_BF16)
    if (has_pairs()) variants.push_back({isa + " in pairs", attention::avx512_bf16_kernels});
#endif
    if (has_cpu_features({"avx512_vbmi2"})) {
      variants.push_back({isa + " with VBMI2", attention::avx512_vbmi2_kernels});
    }
    variants.push_back({isa, attention::avx512_kernels});
    return variants;
  }
#endif
  variants.push_back({isa, attention::find_kernels(isa)});
  if (isa == "portable") variants.push_back({isa + " in pairs", attention::portable_pairs_kernels});
  return variants;
}

// Sums of up to 300 products in another order; in bfloat16 rounded once, at the end.
double tolerance(const AttentionCase& c) { return c.dtype == DType::bf16 ? 8e-3 : 1e-5; }

// All that forward can find, and where it writes it.
struct Forward {
  explicit Forward(const AttentionInputs& in)
      : output(in.call.batch, in.call.heads, in.call.queries, in.call.value_dim, in.call.dtype,
               in.call.layout),
        rows(in.call.batch * in.call.heads * in.call.queries),
        bits(size(rows * words_per_row(in.problem())), ~0ull),
        weights(size(rows * in.call.keys)),
        row_sums(size(rows)),
        row_counts(size(rows)),
        writer(weights.data(), DType::f32, in.call.keys) {}

  ForwardJob job(const AttentionInputs& in, bool with_details) {
    ForwardJob job;
    job.problem = in.problem();
    job.result.output = output.target();
    job.result.bits = bits.data();
    if (with_details) {
      job.result.row_sums = row_sums.data();
      job.result.row_counts = row_counts.data();
      job.result.writer = &writer;
    }
    return job;
  }

  Heads output;
  std::int64_t rows;
  std::vector<std::uint64_t> bits;
  std::vector<float> weights, row_sums;
  std::vector<std::int32_t> row_counts;
  attention::DenseWeights writer;
};

struct Backward {
  explicit Backward(const AttentionInputs& in)
      : query(in.query), key(in.key), value(in.value),
        rows(size(in.call.batch * in.call.heads * in.call.queries)) {}

  BackwardJob job(const AttentionInputs& in, const std::uint64_t* bits) {
    BackwardJob job;
    job.problem = in.problem();
    job.result.grad_output = in.grad_output.view();
    job.result.bits = bits;
    job.result.grad_query = query.target();
    job.result.grad_key = key.target();
    job.result.grad_value = value.target();
    job.result.grad_rows = rows.data();
    return job;
  }

  Heads query, key, value;
  std::vector<float> rows;
};

std::vector<double> unpacked(const std::vector<std::uint64_t>& bits, const AttentionCase& c,
                             std::int64_t rows) {
  const std::int64_t words = (c.keys + 63) / 64;
  std::vector<double> found;
  for (std::int64_t row = 0; row < rows; row++) {
    for (std::int64_t j = 0; j < c.keys; j++) {
      found.push_back(static_cast<double>(bits[size(row * words + j / 64)] >> (j % 64) & 1));
    }
  }
  return found;
}

void check_forward(const Kernels& kernels, const AttentionInputs& in,
                   const AttentionReference& expected, bool with_details, int threads,
                   Forward& found) {
  ForwardJob job = found.job(in, with_details);
  kernels.forward(&job, 1, threads);
  const double t = tolerance(in.call);
  expect_near("output", found.output.all(), expected.output, t);
  expect(found.output.are_gaps_untouched(), "only the output is written");
  expect_near("bits", unpacked(found.bits, in.call, found.rows), as_doubles(expected.above), 0.0);
  if (!with_details) return;
  expect_near("weights", as_doubles(found.weights), expected.weights, 1e-5);
  expect_near("sums of rows", as_doubles(found.row_sums), expected.row_sums, 1e-5);
  expect_near("counts of rows", as_doubles(found.row_counts), expected.row_counts, 0.0);
}

void check_backward(const Kernels& kernels, const AttentionInputs& in,
                    const AttentionReference& expected, const std::uint64_t* bits, int threads) {
  Backward found(in);
  BackwardJob job = found.job(in, bits);
  kernels.backward(&job, 1, threads);
  const double t = tolerance(in.call);
  expect_near("gradient of queries", found.query.all(), expected.grad_query, t);
  expect_near("gradient of keys", found.key.all(), expected.grad_key, t);
  expect_near("gradient of values", found.value.all(), expected.grad_value, t);
  expect_near("sums of gradients", as_doubles(found.rows), expected.grad_rows, 1e-5);
}

void check_case(const Variant& variant, const AttentionInputs& in) {
  begin(variant.name, in.call.name());
  const Kernels& kernels = variant.kernels;
  const AttentionReference expected(in);
  Forward plain(in), detailed(in);
  check_forward(kernels, in, expected, false, 3, plain);
  check_forward(kernels, in, expected, true, 1, detailed);
  check_backward(kernels, in, expected, plain.bits.data(), 1);
  check_backward(kernels, in, expected, nullptr, 3);
  if (&kernels == &attention::portable_kernels) return;
  Forward other(in);
  ForwardJob job = other.job(in, false);
  attention::portable_kernels.forward(&job, 1, 1);
  expect_near("output of the portable kernels", plain.output.all(), other.output.all(),
              tolerance(in.call));
  expect(other.bits == plain.bits, "bits are those of the portable kernels");
}

// From no zeros over about half of them to nothing else.
float threshold_of(Random& random, const AttentionCase& c) {
  const float spread = 0.4f * c.scale * std::sqrt(static_cast<float>(c.dim));
  const float wanted = random.one_of<float>({-100.0f, 0.0f, 0.0f, 0.5f, 1.0f, 1.3f, 1.7f, 100.0f});
  if (wanted == 0.0f) return 0.0f;
  // Between two scores that are possible.
  return std::round(wanted * spread * 64.0f) / 64.0f + 1.0f / 128.0f;
}

AttentionCase random_case(Random& random) {
  AttentionCase c;
  c.batch = random.between(1, 2);
  c.key_heads = random.between(1, 2);
  c.heads = c.key_heads * random.between(1, 2);
  c.queries = random.one_of<std::int64_t>({1, 2, 7, 8, 9, 16, 63, 64, 65, 70});
  c.keys = random.one_of<std::int64_t>({1, 2, 7, 16, 63, 64, 65, 111, 128, 129, 200});
  c.dim = random.one_of<std::int64_t>({1, 3, 8, 16, 17, 32, 40, 64});
  c.value_dim = random.one_of<std::int64_t>({1, 3, 8, 16, 17, 32, 40, 64});
  if (random.coin()) c.value_dim = c.dim;
  c.dtype = random.between(0, 2) == 0 ? DType::bf16 : DType::f32;
  c.layout = static_cast<Heads::Layout>(random.between(0, 2));
  c.mask = random.one_of<Mask::Kind>({Mask::Kind::none, Mask::Kind::none, Mask::Kind::boolean,
                                      Mask::Kind::additive, Mask::Kind::additive_bf16});
  c.has_mask_per_query = random.coin();
  c.is_mask_contiguous = random.between(0, 2) != 0;
  const std::int64_t reach = random.between(0, 3);
  if (reach >= 2) c.last_diagonal = c.keys - c.queries;  // causal
  if (reach == 3) c.first_diagonal = c.last_diagonal - random.between(0, 70);
  c.scale = random.coin() ? 0.25f : 1.0f;
  c.threshold = threshold_of(random, c);
  c.power = random.between(0, 2) == 0 ? 2 : 1;
  c.dropout = random.between(0, 3) == 0 ? 0.25f : 0.0f;
  return c;
}

// Lets the cases reach the ways of computing that thresholds rule out on some processors.
void take_all_ways(const Kernels& kernels) {
  for (attention::Thresholds* thresholds : {&kernels.thresholds->f32, &kernels.thresholds->bf16}) {
    thresholds->least_to_screen = 256;
    thresholds->most_to_fetch = 0.6f;
  }
}

// A head of four vectors, which has code of its own, at a length from which on screening may run.
AttentionCase long_case(std::int64_t dim, float threshold) {
  AttentionCase c;
  c.queries = c.keys = 260;
  c.dim = c.value_dim = dim;
  c.scale = 0.25f;
  c.threshold = threshold;
  return c;
}

// Several sequences in one call, each with its own result.
void check_jobs(const std::string& isa) {
  begin(isa, "attention, several jobs");
  Random random(5);
  std::vector<AttentionInputs> inputs;
  for (std::int64_t queries : {9, 0, 70, 3}) {
    AttentionCase c;
    c.heads = c.key_heads = 2;
    c.queries = queries;
    c.keys = queries + 60;
    c.dim = c.value_dim = 16;
    c.threshold = 1.0f + 1.0f / 128.0f;
    inputs.emplace_back(c, random.bits());
  }
  std::vector<Forward> found;
  std::vector<Backward> gradients;
  for (const AttentionInputs& in : inputs) {
    found.emplace_back(in);
    gradients.emplace_back(in);
  }
  std::vector<ForwardJob> jobs;
  std::vector<BackwardJob> backward_jobs;
  for (std::size_t i = 0; i < inputs.size(); i++) {
    jobs.push_back(found[i].job(inputs[i], false));
    backward_jobs.push_back(gradients[i].job(inputs[i], nullptr));
  }
  const Kernels& kernels = attention::find_kernels(isa);
  kernels.forward(jobs.data(), static_cast<std::int64_t>(jobs.size()), 2);
  kernels.backward(backward_jobs.data(), static_cast<std::int64_t>(jobs.size()), 2);
  for (std::size_t i = 0; i < inputs.size(); i++) {
    const AttentionReference expected(inputs[i]);
    expect_near("output", found[i].output.all(), expected.output, 1e-5);
    expect_near("gradient of keys", gradients[i].key.all(), expected.grad_key, 1e-5);
  }
}

// NaN and inf are not lost.
void check_not_finite(const Variant& variant, DType dtype) {
  AttentionCase c;
  c.dtype = dtype;
  c.queries = 20;
  c.keys = 150;
  c.dim = c.value_dim = 16;
  const float numbers[] = {NAN, HUGE_VALF, -HUGE_VALF};
  for (float x : numbers) {
    AttentionInputs in_query(c, 1), in_key(c, 2), in_value(c, 3);
    in_query.query.set(0, 0, 7, 5, x);
    in_key.key.set(0, 0, 140, 0, x);
    in_value.value.set(0, 0, 3, 15, x);
    for (const AttentionInputs* in : {&in_query, &in_key, &in_value}) {
      begin(variant.name, "attention with " + std::to_string(x));
      Forward found(*in);
      check_forward(variant.kernels, *in, AttentionReference(*in), true, 1, found);
    }
  }
}

// Numbers that AVX512-BF16 takes for 0, products that it would round to 0, and products that overflow unless
// the scale comes first.
void check_extremes(const Variant& variant) {
  struct Extreme {
    int query, key;  // powers of 2
    float scale;
  };
  for (const Extreme& x : {Extreme{-130, 120, 1.0f}, Extreme{-70, -60, 1.0f},
                           Extreme{64, 70, 0x1p-120f}, Extreme{55, 55, 0x1p-110f},
                           Extreme{-55, -56, 0x1p100f}, Extreme{-55, -55, 0x1p100f}}) {
    AttentionCase c = long_case(17, 0.0f);
    c.dtype = DType::bf16;
    c.scale = x.scale;
    AttentionInputs in(c, 4);
    for (std::int64_t i = 0; i < c.queries; i += 2) {  // one tile of three has none of them
      for (std::int64_t p = 0; p < c.dim && i < 128; p++) {
        in.query.set(0, 0, i, p, std::ldexp(static_cast<float>(1 + (i + p) % 3), x.query));
        in.key.set(0, 0, i, p, std::ldexp(p % 2 == 0 ? 1.0f : -1.0f, x.key));
      }
    }
    begin(variant.name, c.name() + " scale " + std::to_string(x.scale));
    Forward found(in);
    ForwardJob job = found.job(in, true);
    variant.kernels.forward(&job, 1, 1);
    const AttentionReference expected(in);
    expect_near("bits", unpacked(found.bits, c, found.rows), as_doubles(expected.above), 0.0);
    expect_near("weights", as_doubles(found.weights), expected.weights, 1e-5);
  }
}

// Sums in pairs are the same, bit by bit, in plain C++ and in AVX512-BF16.
void check_pairs() {
  AttentionCase c = long_case(40, 0.0f);
  c.dtype = DType::bf16;
  c.queries = c.keys = 130;  // too few to screen
  AttentionInputs in(c, 9);
  Random random(10);
  for (Heads* rows : {&in.query, &in.key}) {
    for (std::int64_t i = 0; i < rows->rows; i++) {
      for (std::int64_t p = 0; p < rows->size; p++) rows->set(0, 0, i, p, random.uniform());
    }
  }
  Forward one(in), other(in);
  ForwardJob job = one.job(in, true), other_job = other.job(in, true);
  attention::portable_pairs_kernels.forward(&job, 1, 1);
  attention::find_kernels("avx512").forward(&other_job, 1, 1);
  expect(one.weights == other.weights, "weights are those of the portable pairs");
}

// Results are the same, bit by bit, for any number of threads.
void check_threads(const Variant& variant, DType dtype) {
  AttentionCase c = long_case(32, 1.0f);
  c.dtype = dtype;
  c.heads = c.key_heads = 2;
  const AttentionInputs in(c, 8);
  begin(variant.name, c.name());
  const Kernels& kernels = variant.kernels;
  std::vector<double> outputs[2], gradients[2];
  for (int i = 0; i < 2; i++) {
    Forward found(in);
    Backward backward(in);
    ForwardJob job = found.job(in, false);
    BackwardJob backward_job = backward.job(in, found.bits.data());
    kernels.forward(&job, 1, 1 + i);
    kernels.backward(&backward_job, 1, 1 + i);
    outputs[i] = found.output.all();
    gradients[i] = backward.value.all();
  }
  expect(outputs[0] == outputs[1] && gradients[0] == gradients[1], "threads make no difference");
}

}  // namespace

void check_attention(const std::string& isa) {
  constexpr int kRandomCases = 120;
  const std::vector<Variant> variants = variants_of(isa);
  begin(isa, "choice of kernels");
  expect(&attention::find_kernels(isa) == &variants[0].kernels, "the best kernels are chosen");
  for (const Variant& variant : variants) {
    take_all_ways(variant.kernels);
    Random random(1);
    for (int i = 0; i < kRandomCases; i++) {
      const AttentionCase c = random_case(random);
      check_case(variant, AttentionInputs(c, random.bits()));
    }
    for (std::int64_t dim : {32, 64}) {
      for (float threshold : {0.0f, 1.0078125f}) {
        check_case(variant, AttentionInputs(long_case(dim, threshold), random.bits()));
      }
    }
    for (DType dtype : {DType::f32, DType::bf16}) {
      check_not_finite(variant, dtype);
      check_threads(variant, dtype);
    }
    check_extremes(variant);
  }
  check_jobs(isa);
  if (isa == "avx512" && has_pairs()) {
    begin(isa, "pairs");
    check_pairs();
  }
}

}  // namespace relakit::check
