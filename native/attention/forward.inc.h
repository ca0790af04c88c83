// The output of attention, tile by tile: dense where a tile has many non-zeros, along lists where
// it has few. Part of kernels.inc.h.

#include "cpu/threads.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Turn listed scores into weights by applying the power and dropout.
void weigh_list(const Problem& p, const Head& head, std::int64_t query, std::int64_t key,
                const std::uint8_t* list, int length, float* weights) {
  if (p.power == 2) {
    for (int t = 0; t < length; t += kWidth) {
      const Vector x = Vector::load(weights + t);
      (x * x).store(weights + t);
    }
  }
  if (p.dropout > 0.0f) {
    for (int t = 0; t < length; t++) weights[t] *= head.kept(query, key + list[t]);
  }
}

bool reports_rows(const ForwardResult& result) {
  return result.row_counts != nullptr || result.row_sums != nullptr || result.writer != nullptr;
}

// Report one row of a tile: whatever the caller wants besides the output.
void report_row(const ForwardResult& result, std::int64_t row, std::int64_t column,
                const std::uint8_t* list, int length, const float* weights) {
  if (result.row_counts != nullptr || result.row_sums != nullptr) {
    float sum = 0.0f;
    int count = 0;
    for (int t = 0; t < length; t++) {
      sum += weights[t];
      count += static_cast<int>(weights[t] != 0.0f);
    }
    if (result.row_counts != nullptr) result.row_counts[row] += count;
    if (result.row_sums != nullptr) result.row_sums[row] += sum;
  }
  if (result.writer != nullptr) result.writer->add(row, column, list, weights, length);
}

// Set to zero whatever tiles add to, and the bits, because tiles that no query sees write none.
void start_rows(const Problem& p, const ForwardResult& result, std::int64_t row,
                std::int64_t count) {
  const auto rows = static_cast<std::size_t>(count);
  if (result.row_counts != nullptr) set_to_zero(result.row_counts + row, rows * 4);
  if (result.row_sums != nullptr) set_to_zero(result.row_sums + row, rows * 4);
  if (result.bits != nullptr) {
    const std::int64_t words = words_per_row(p);
    set_to_zero(result.bits + row * words, rows * static_cast<std::size_t>(words) * 8);
  }
}

// Write the bits of one row of a tile, if wanted.
void write_bits(const Problem& p, const ForwardResult& result, std::int64_t row, std::int64_t key,
                int columns, const KeyBits& bits) {
  if (result.bits == nullptr) return;
  std::uint64_t* words = result.bits + row * words_per_row(p) + key / 64;
  for (int w = 0; 64 * w < columns; w++) words[w] = bits.words[w];
}

// The output for a block of queries of one head.
template <class T>
class ForwardTask {
 public:
  ForwardTask(const Problem& p, const ForwardResult& result, std::int64_t batch,
              std::int64_t head_index, std::int64_t begin, std::int64_t end)
      : p_(p),
        result_(result),
        batch_(batch),
        begin_(begin),
        count_(end - begin),
        written_(row_of<T>(result.output, batch, head_index, begin)),
        in_place_(sizeof(T) == sizeof(float) && p.value_dim % kWidth == 0),
        buffer_(in_place_ ? 0 : count_ * value_dim_),
        candidates_((count_ + kQueryTile - 1) / kQueryTile),
        scorer_(p, batch, head_index, begin, end,
                {true, !are_weights_scores_, result.bits != nullptr}, ahead_) {}

  // Let run() fetch the rows of the head that this thread is likely to work on next.
  void fetch_ahead(const ForwardJob& job, std::int64_t batch, std::int64_t head) {
    const Problem& p = job.problem;
    const std::int64_t key_head = head / (p.heads / p.key_heads);
    ahead_.add_rows(row_of<T>(p.key, batch, key_head, 0), p.dim, p.key.row, p.keys);
    ahead_.add_rows(row_of<T>(p.value, batch, key_head, 0), p.value_dim, p.value.row, p.keys);
    ahead_.add_rows(row_of<T>(p.query, batch, head, 0), p.dim, p.query.row, p.queries);
    const Target& output = job.result.output;
    ahead_.add_rows(row_of<T>(output, batch, head, 0), p.value_dim, output.row, p.queries);
  }

  void run() {
    const Head& head = scorer_.head;
    start();
    for (std::int64_t i = 0; i * kQueryTile < count_; i++) candidates_[i] = kUnknown;
    for (std::int64_t key = 0; key < p_.keys; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, p_.keys - key));
      values_ = packed_rows(row_of<T>(p_.value, batch_, head.key_head(), key), p_.value.row,
                            columns, p_.value_dim, values_buffer_);
      // As in the plain formula, a zero weight times a value of inf or NaN is NaN.
      const bool is_finite = all_finite(values_, columns, value_dim_);
      if (is_finite && !head.reaches(begin_, count_, key, columns)) continue;
      scorer_.take_keys(key, columns);
      for (std::int64_t q = 0; q < count_; q += kQueryTile) {
        const int rows = static_cast<int>(least(kQueryTile, count_ - q));
        scorer_.fetch_next_mask(q, rows);
        if (!is_finite) {
          scorer_.fill_all(q, rows, tile_);
        } else if (!head.reaches(begin_ + q, rows, key, columns)) {
          continue;
        } else {
          scorer_.fill(q, rows, candidates_[q / kQueryTile], tile_);
        }
        add_tile(q, key, is_finite);
      }
    }
    if (!in_place_) {
      unpack_rows(buffer_.data(), value_dim_, count_, p_.value_dim, 1.0f, written_, result_.output.row);
    }
  }

 private:
  float* output(std::int64_t i) {
    // in_place_ implies that T is float.
    return in_place_ ? reinterpret_cast<float*>(written_) + i * result_.output.row
                     : buffer_ + i * value_dim_;
  }

  void start() {
    const std::size_t row_bytes = static_cast<std::size_t>(value_dim_) * sizeof(float);
    const bool is_one_piece = !in_place_ || result_.output.row == value_dim_;
    const std::int64_t pieces = is_one_piece ? 1 : count_;
    const std::size_t bytes = is_one_piece ? static_cast<std::size_t>(count_) * row_bytes : row_bytes;
    for (std::int64_t i = 0; i < pieces; i++) set_to_zero(output(i), bytes);
    start_rows(p_, result_, scorer_.head.row(begin_), count_);
  }

  void add_tile(std::int64_t q, std::int64_t key, bool is_finite) {
    const Head& head = scorer_.head;
    for (int i = 0; i < tile_.rows; i++) {
      write_bits(p_, result_, head.row(begin_ + q + i), key, tile_.columns, tile_.bits[i]);
    }
    const bool has_many = tile_.has_more_than(thresholds_for<T>().dense_forward);
    const bool dense = !is_finite || (!tile_.has_lists && has_many);
    if (!dense || !are_weights_scores_) {
      if (!tile_.has_lists) tile_.list_scores();
      for (int i = 0; !are_weights_scores_ && i < tile_.rows; i++) {
        weigh_list(p_, head, begin_ + q + i, key, tile_.list(i), tile_.lengths[i],
                   tile_.weight_row(i));
        report_row(result_, head.row(begin_ + q + i), head.column(key), tile_.list(i),
                   tile_.lengths[i], tile_.weight_row(i));
      }
      if (dense) tile_.unlist(tile_.weights, tile_.scores);
    }
    if (dense) {
      const std::int64_t stride = in_place_ ? result_.output.row : value_dim_;
      add_products(output(q), stride, tile_.rows, Weights<false>{tile_.scores}, values_, value_dim_,
                   tile_.columns, ahead_);
      return;
    }
    for (int i = 0; i < tile_.rows; i++) {
      ahead_.fetch(kLinesPerRow);
      add_rows(output(q + i), values_.data, values_.stride, value_dim_, tile_.list(i),
               tile_.weight_row(i), tile_.lengths[i]);
    }
  }

  const Problem& p_;
  const ForwardResult& result_;
  const std::int64_t batch_, begin_, count_;
  const std::int64_t value_dim_ = round_up(p_.value_dim, kWidth);
  T* const written_;
  const bool in_place_;
  // Whether the weights are the rectified scores and the caller does not want to see them.
  const bool are_weights_scores_ =
      p_.power == 1 && p_.dropout == 0.0f && !reports_rows(result_);
  Buffer buffer_, values_buffer_{kKeyTile * value_dim_}, candidates_;
  Rows values_{nullptr, 0};
  Tile tile_;
  PrefetchQueue ahead_;
  Scorer<T> scorer_;
};

constexpr std::int64_t kMostQueriesPerTask = 2048;
// Up to this many queries, packing keys and values takes longer than it saves.
constexpr std::int64_t kMostQueriesUnpacked = 8;

// Whether forward_few_queries (few_queries.inc.h) is faster.
bool is_for_few_queries(const Problem& p) {
  return 0 < p.queries && p.queries <= kMostQueriesUnpacked && p.dim % kWidth == 0 &&
         p.value_dim % kWidth == 0;
}

// Whether reading a head takes about as long as computing it, if `times` times as much is read as
// in forward.
template <class T>
bool is_short(const Problem& p, int times) {
  const std::int64_t numbers = (p.queries + p.keys) * (p.dim + p.value_dim) * times;
  return numbers * static_cast<std::int64_t>(sizeof(T)) <= kMostBytesAhead;
}

// How forward is divided into tasks. A row's result does not depend on its block.
struct ForwardPlan {
  const ForwardJob* jobs;
  std::int64_t count, tasks, size;  // jobs, tasks, queries per block
  int threads;

  std::int64_t blocks(const Problem& p) const { return (p.queries + size - 1) / size; }
};

template <class T>
void forward_block(const ForwardPlan& plan, std::int64_t task) {
  const ForwardJob& job = job_of(plan.jobs, plan.count, task);
  const Problem& p = job.problem;
  const TaskPart part = part_of(job, task, p.heads, plan.blocks(p));
  const std::int64_t begin = part.block * plan.size;
  ForwardTask<T> mine(p, job.result, part.batch, part.head, begin,
                      least(begin + plan.size, p.queries));
  if (task + plan.threads < plan.tasks) {
    const ForwardJob& later = job_of(plan.jobs, plan.count, task + plan.threads);
    if (plan.blocks(later.problem) == 1 && is_short<T>(later.problem, 1)) {
      const TaskPart next = part_of(later, task + plan.threads, later.problem.heads, 1);
      mine.fetch_ahead(later, next.batch, next.head);
    }
  }
  mine.run();
}

template <class T>
void forward_blocks(ForwardJob* jobs, std::int64_t count, int threads) {
  // With large blocks of queries, keys are packed less often; small ones keep all threads busy.
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < count; i++) {
    const Problem& p = jobs[i].problem;
    if (!is_for_few_queries(p)) rows += p.queries * p.batch * p.heads;
  }
  const std::int64_t fair = round_up((rows + 4 * threads - 1) / (4 * threads), kQueryTile);
  ForwardPlan plan{jobs, count, 0, between(kQueryTile, fair, kMostQueriesPerTask), threads};
  plan.tasks = number_tasks(jobs, count, [&](const Problem& p) {
    return is_for_few_queries(p) ? 0 : p.batch * p.heads * plan.blocks(p);
  });
  run_parallel(
      plan.tasks, threads,
      [](void* data, std::int64_t task) { forward_block<T>(*static_cast<ForwardPlan*>(data), task); },
      &plan);
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
