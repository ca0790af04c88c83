// The output for a few queries, as when text is generated token by token: keys and values are read where
// they are, once, and of the values only those that some query attends to. Part of kernels.inc.h.

#include "cpu/prefetch.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

constexpr std::int64_t kMostQueriesInPlace = 8;
// Fixed, so that sums are split up in the same way for any number of threads.
constexpr std::int64_t kKeysPerTask = 4096;
// Above this share of non-zeros nearly all values are read, and the processor fetches them on its own.
constexpr float kPrefetch = 0.6f;

constexpr std::int64_t kRowsAhead = 16;  // how many keys ahead of the current one to fetch

bool is_for_few_queries(const Problem& p) {
  return p.queries <= kMostQueriesInPlace && p.dim % kWidth == 0 && p.value_dim % kWidth == 0;
}

// out[j] = x . row[j] + start, for N vectors to a row.
template <int N, class T>
void dot_all_rows_of(const float* x, const T* rows, std::int64_t stride, int count, float start,
                     float* out) {
  Vector mine[N];
  RELAKIT_UNROLL
  for (int v = 0; v < N; v++) mine[v] = Vector::load(x + v * kWidth);
  for (int j = 0; j < count; j += kStep) {
    Vector sums[kStep];
    RELAKIT_UNROLL
    for (int u = 0; u < kStep; u++) {
      const T* y = rows + least(j + u, count - 1) * stride;
      RELAKIT_UNROLL
      for (int v = 0; v < N; v++) prefetch(y + kRowsAhead * stride + v * kWidth);
      sums[u] = mine[0] * Vector::load(y);
      RELAKIT_UNROLL
      for (int v = 1; v < N; v++) {
        sums[u] = sums[u].plus_product(mine[v], Vector::load(y + v * kWidth));
      }
    }
    store_sums(sums, out + j);
  }
  for (int j = 0; j < count; j++) out[j] += start;
}

template <class T>
void dot_all_rows(const float* x, const T* rows, std::int64_t stride, std::int64_t size, int count,
                  float start, float* out) {
  if (size == 4 * kWidth) {
    dot_all_rows_of<4>(x, rows, stride, count, start, out);
    return;
  }
  for (int j = 0; j < count; j += kStep) {
    Vector sums[kStep];
    for (int u = 0; u < kStep; u++) {
      const T* y = rows + least(j + u, count - 1) * stride;
      sums[u] = Vector::all(0.0f);
      for (std::int64_t p = 0; p < size; p += kWidth) {
        sums[u] = sums[u].plus_product(Vector::load(x + p), Vector::load(y + p));
      }
    }
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
    // A tile's values are fetched while those of the tile before are summed up.
    Tile* now = &tiles_[0];
    Tile* before = nullptr;
    std::int64_t key_before = 0;
    for (std::int64_t key = begin; key < end; key += kKeyTile) {
      fill(key, static_cast<int>(least(kKeyTile, end - key)), *now);
      if (before != nullptr) add_values(key_before, *before);
      before = now;
      key_before = key;
      now = now == &tiles_[0] ? &tiles_[1] : &tiles_[0];
    }
    if (before != nullptr) add_values(key_before, *before);
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
                     -head_.threshold(), tile.score_row(i));
        if (head_.has_bias()) head_.add_bias(i, key, columns, tile.score_row(i));
        tile.rectify_row(i, columns);
        tile.finish_row(i, columns, sight == Sight::all);
      }
      if (static_cast<float>(tile.total) <= kPrefetch * static_cast<float>(rows * columns)) {
        prefetch_values(key, tile);
      }
      tile.list_scores();
    }
    for (int i = 0; i < rows; i++) {
      write_bits(p_, result_, head_.row(i), key, columns, tile.bits[i]);
      weigh_list(p_, head_, i, key, tile.list(i), tile.lengths[i], tile.weight_row(i));
      report_row(result_, head_.row(i), key, tile.list(i), tile.lengths[i], tile.weight_row(i));
    }
  }

  void prefetch_values(std::int64_t key, const Tile& tile) {
    const auto bytes = p_.value_dim * static_cast<std::int64_t>(sizeof(T));
    for (int w = 0; w < kWords; w++) {
      std::uint64_t wanted = 0;
      for (int i = 0; i < tile.rows; i++) wanted |= tile.bits[i].words[w];
      for (; wanted != 0; wanted &= wanted - 1) {
        const auto* row = reinterpret_cast<const char*>(
            values_ + (key + 64 * w + lowest_bit(wanted)) * p_.value.row);
        for (std::int64_t line = 0; line < bytes; line += 64) prefetch(row + line);
      }
    }
  }

  void add_values(std::int64_t key, Tile& tile) {
    const T* rows = values_ + key * p_.value.row;
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
  Tile tiles_[2];
};

// Each task has a range of keys and sums of its own, which are then added up in order.
template <class T>
void forward_few_queries(const Problem& p, const ForwardResult& result, int threads) {
  const std::int64_t heads = p.batch * p.heads, size = p.queries * p.value_dim;
  const std::int64_t parts = p.keys == 0 ? 1 : (p.keys + kKeysPerTask - 1) / kKeysPerTask;
  Buffer sums(heads * parts * size);
  start_rows(p, result, 0, heads * p.queries);
  // A row's weights are reported in the order of its keys.
  if (reports_rows(result)) threads = 1;
  struct Work {
    const Problem& p;
    const ForwardResult& result;
    std::int64_t parts, size;
    float* sums;
  } work{p, result, parts, size, sums};
  run_parallel(
      heads * parts, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t pair = task / w.parts, begin = task % w.parts * kKeysPerTask;
        FewQueriesTask<T>(w.p, w.result, pair / w.p.heads, pair % w.p.heads, w.sums + task * w.size)
            .run(begin, least(begin + kKeysPerTask, w.p.keys));
      },
      &work);
  for (std::int64_t pair = 0; pair < heads; pair++) {
    float* sum = sums + pair * parts * size;
    for (std::int64_t part = 1; part < parts; part++) {
      for (std::int64_t x = 0; x < size; x++) sum[x] += sum[part * size + x];
    }
    T* output = static_cast<T*>(result.output.data) + pair / p.heads * result.output.batch +
                pair % p.heads * result.output.head;
    unpack_rows(sum, p.value_dim, p.queries, p.value_dim, 1.0f, output, result.output.row);
  }
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
