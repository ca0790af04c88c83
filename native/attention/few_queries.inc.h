// The output for a few queries, as when text is generated token by token. Keys and values are read
// in place, once, and values only if some query attends to them. Part of kernels.inc.h.

#include "cpu/prefetch.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Fixed, so that sums are split up in the same way for any number of threads.
constexpr std::int64_t kKeysPerTask = 4096;

// Rows of values that will be added up, prefetched a few lines at a time while keys are read.
// Requested all at once, or into the first-level cache, they would delay the keys. Keys are read
// one after the other, so the processor prefetches them on its own.
class WantedRows {
 public:
  void start(std::int64_t row_bytes) {
    lines_ = (row_bytes + kLine - 1) / kLine;
    count_ = next_ = 0;
  }
  void add(const void* row) { rows_[count_++] = static_cast<const char*>(row); }
  // How many lines to fetch per step so that `steps` steps fetch all.
  std::int64_t per_step(std::int64_t steps) const { return (count_ * lines_ + steps - 1) / steps; }
  void fetch(std::int64_t count) {
    for (const std::int64_t end = least(next_ + count, count_ * lines_); next_ < end; next_++) {
      prefetch_second(rows_[next_ / lines_] + next_ % lines_ * kLine);
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;

  const char* rows_[kKeyTile];
  std::int64_t lines_ = 1, count_ = 0, next_ = 0;
};

// out[j] = x . row[j] + start, for rows of N vectors.
template <int N, class T>
void dot_all_rows_of(const float* x, const T* rows, std::int64_t stride, int count, float start,
                     WantedRows& wanted, float* out) {
  const std::int64_t lines = wanted.per_step((count + kStep - 1) / kStep);
  Vector mine[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) mine[v] = Vector::load(x + v * kWidth);
  for (int j = 0; j < count; j += kStep) {
    Vector sums[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const T* y = rows + least(j + u, count - 1) * stride;
      sums[u] = mine[0] * Vector::load(y);
      RELAKIT_UNROLL
      for (int v = 1; v < N; v++) {
        sums[u] = sums[u].plus_product(mine[v], Vector::load(y + v * kWidth));
      }
    }
    wanted.fetch(lines);
    store_sums(sums, out + j);
  }
  for (int j = 0; j < count; j++) out[j] += start;
}

template <class T>
void dot_all_rows(const float* x, const T* rows, std::int64_t stride, std::int64_t size, int count,
                  float start, WantedRows& wanted, float* out) {
  if (size == kHead * kWidth) {
    dot_all_rows_of<kHead>(x, rows, stride, count, start, wanted, out);
    return;
  }
  const std::int64_t lines = wanted.per_step((count + kStep - 1) / kStep);
  for (int j = 0; j < count; j += kStep) {
    Vector sums[kStep];
    for (int u = 0; u < kStep; u++) {
      const T* y = rows + least(j + u, count - 1) * stride;
      sums[u] = Vector::all(0.0f);
      for (std::int64_t p = 0; p < size; p += kWidth) {
        sums[u] = sums[u].plus_product(Vector::load(x + p), Vector::load(y + p));
      }
    }
    wanted.fetch(lines);
    store_sums(sums, out + j);
  }
  for (int j = 0; j < count; j++) out[j] += start;
}

// All queries of one head over a range of keys.
template <class T>
class FewQueriesTask {
 public:
  // output: [queries, value_dim], float32.
  FewQueriesTask(const Problem& p, const ForwardResult& result, std::int64_t batch,
             std::int64_t head_index, float* output)
      : p_(p), result_(result), head_(p, batch, head_index), output_(output) {
    keys_ = row_of<T>(p.key, batch, head_.key_head(), 0);
    values_ = row_of<T>(p.value, batch, head_.key_head(), 0);
    pack_rows(row_of<T>(p.query, batch, head_index, 0), p.query.row, static_cast<int>(p.queries),
              p.dim, p.dim, p.scale, queries_);
    set_to_zero(output, sizeof(float) * static_cast<std::size_t>(p.queries * p.value_dim));
  }

  void run(std::int64_t begin, std::int64_t end) {
    // A tile's values are fetched while the next tile's keys are read, and added up after that.
    std::int64_t filled = 0;
    for (std::int64_t key = begin; key < end; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, end - key));
      if (!head_.reaches(0, p_.queries, key, columns)) continue;
      keys_of_[filled % kTiles] = key;
      fill(key, columns, tiles_[filled % kTiles]);
      filled++;
      if (filled >= kTiles) add_values(filled - kTiles);
    }
    for (std::int64_t i = filled < kTiles ? 0 : filled - kTiles + 1; i < filled; i++) add_values(i);
  }

 private:
  void fill(std::int64_t key, int columns, Tile& tile) {
    const int rows = static_cast<int>(p_.queries);
    tile.start(rows, columns);
    const Sight sight = head_.look(0, rows, key, columns, tile.seen);
    if (sight == Sight::none) {
      for (int i = 0; i < rows; i++) tile.leave_empty(i);
    } else {
      for (int i = 0; i < rows; i++) {
        dot_all_rows(queries_ + i * p_.dim, keys_ + key * p_.key.row, p_.key.row, p_.dim, columns,
                     -head_.threshold(), wanted_, tile.score_row(i));
        if (head_.has_bias()) head_.add_bias(i, key, columns, tile.score_row(i));
        tile.rectify_row(i, columns);
        tile.finish_row(i, columns, sight == Sight::all);
      }
      wanted_.start(p_.value_dim * static_cast<std::int64_t>(sizeof(T)));
      const float most = thresholds_for<T>().most_to_fetch * static_cast<float>(rows * columns);
      if (static_cast<float>(tile.total) <= most) want_values(key, tile);
      tile.list_scores();
    }
    for (int i = 0; i < rows; i++) {
      write_bits(p_, result_, head_.row(i), key, columns, tile.bits[i]);
      weigh_list(p_, head_, i, key, tile.list(i), tile.lengths[i], tile.weight_row(i));
      report_row(result_, head_.row(i), head_.column(key), tile.list(i), tile.lengths[i],
                 tile.weight_row(i));
    }
  }

  void want_values(std::int64_t key, const Tile& tile) {
    for (int w = 0; w < kWords; w++) {
      std::uint64_t wanted = 0;
      for (int i = 0; i < tile.rows; i++) wanted |= tile.bits[i].words[w];
      for (; wanted != 0; wanted &= wanted - 1) {
        wanted_.add(values_ + (key + 64 * w + lowest_bit(wanted)) * p_.value.row);
      }
    }
  }

  void add_values(std::int64_t number) {
    Tile& tile = tiles_[number % kTiles];
    const T* rows = values_ + keys_of_[number % kTiles] * p_.value.row;
    for (int i = 0; i < tile.rows; i++) {
      add_rows(output_ + i * p_.value_dim, rows, p_.value.row, p_.value_dim, tile.list(i),
               tile.weight_row(i), tile.lengths[i]);
    }
  }

  const Problem& p_;
  const ForwardResult& result_;
  const Head head_;
  float* const output_;
  const T *keys_ = nullptr, *values_ = nullptr;
  Buffer queries_{p_.queries * p_.dim};
  static constexpr std::int64_t kTiles = 3;
  Tile tiles_[kTiles];
  std::int64_t keys_of_[kTiles];
  WantedRows wanted_;
};

// Each task has its own range of keys and its own sums, which are then added up in order.
struct FewQueriesPlan {
  const ForwardJob* jobs;
  std::int64_t count;
  float* sums;

  static std::int64_t parts(const Problem& p) {
    return p.keys == 0 ? 1 : (p.keys + kKeysPerTask - 1) / kKeysPerTask;
  }
  static std::int64_t size(const Problem& p) { return p.queries * p.value_dim; }
};

template <class T>
void forward_few_queries_part(const FewQueriesPlan& plan, std::int64_t index) {
  const ForwardJob& job = job_of(plan.jobs, plan.count, index);
  const Problem& p = job.problem;
  const TaskPart part = part_of(job, index, p.heads, plan.parts(p));
  const std::int64_t begin = part.block * kKeysPerTask;
  FewQueriesTask<T>(p, job.result, part.batch, part.head,
                    plan.sums + job.first_sum + (index - job.first_task) * plan.size(p))
      .run(begin, least(begin + kKeysPerTask, p.keys));
}

// Add up the sums of all tasks of a job, and write them.
template <class T>
void finish_few_queries(const FewQueriesPlan& plan, const ForwardJob& job) {
  const Problem& p = job.problem;
  const std::int64_t parts = plan.parts(p), size = plan.size(p);
  for (std::int64_t pair = 0; pair < p.batch * p.heads; pair++) {
    float* sum = plan.sums + job.first_sum + pair * parts * size;
    for (std::int64_t part = 1; part < parts; part++) {
      for (std::int64_t x = 0; x < size; x++) sum[x] += sum[part * size + x];
    }
    T* output = row_of<T>(job.result.output, pair / p.heads, pair % p.heads, 0);
    unpack_rows(sum, p.value_dim, p.queries, p.value_dim, 1.0f, output, job.result.output.row);
  }
}

template <class T>
void forward_few_queries(ForwardJob* jobs, std::int64_t count, int threads) {
  const std::int64_t tasks = number_tasks(jobs, count, [](const Problem& p) {
    return is_for_few_queries(p) ? p.batch * p.heads * FewQueriesPlan::parts(p) : 0;
  });
  if (tasks == 0) return;
  std::int64_t numbers = 0;
  for (std::int64_t i = 0; i < count; i++) {
    ForwardJob& job = jobs[i];
    const Problem& p = job.problem;
    job.first_sum = numbers;
    if (!is_for_few_queries(p)) continue;
    const std::int64_t heads = p.batch * p.heads;
    numbers += heads * FewQueriesPlan::parts(p) * FewQueriesPlan::size(p);
    for (std::int64_t pair = 0; pair < heads; pair++) {
      start_rows(p, job.result, Head(p, pair / p.heads, pair % p.heads).row(0), p.queries);
    }
    // A row's weights must be reported in the order of its keys.
    if (reports_rows(job.result)) threads = 1;
  }
  Buffer sums(numbers);
  FewQueriesPlan plan{jobs, count, sums};
  run_parallel(
      tasks, threads,
      [](void* data, std::int64_t task) {
        forward_few_queries_part<T>(*static_cast<FewQueriesPlan*>(data), task);
      },
      &plan);
  for (std::int64_t i = 0; i < count; i++) {
    if (is_for_few_queries(jobs[i].problem)) finish_few_queries<T>(plan, jobs[i]);
  }
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
