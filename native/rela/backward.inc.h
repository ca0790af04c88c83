// The gradients. Part of kernels.inc.h.

#include "parallel.h"

namespace relakit::RELAKIT_ISA {
namespace {

constexpr std::int64_t kBackwardBlock = 1024;  // queries or keys of a task, where heads are few

// The gradients of a range of queries, or of keys and values, or of both, of one key head: for all
// query heads that share it, one after the other.
template <class T>
class BackwardTask {
 public:
  struct Range {
    std::int64_t begin, end;
  };

  BackwardTask(const Problem& p, const BackwardResult& result, std::int64_t batch,
               std::int64_t key_head, Range queries, Range keys, bool want_queries, bool want_keys)
      : p_(p),
        result_(result),
        batch_(batch),
        key_head_(key_head),
        queries_(queries),
        keys_(keys),
        want_queries_(want_queries),
        want_keys_(want_keys) {}

  void run(std::int64_t first_head, std::int64_t last_head) {
    are_keys_finite_ = is_finite(p_.key, key_head_, p_.keys, p_.dim) &&
                       is_finite(p_.value, key_head_, p_.keys, p_.value_dim);
    const std::int64_t row = (batch_ * p_.key_heads + key_head_) * p_.keys + keys_.begin;
    Sums grad_keys(want_keys_ ? result_.grad_key : nullptr, row, keys_.end - keys_.begin, p_.dim);
    Sums grad_values(want_keys_ ? result_.grad_value : nullptr, row, keys_.end - keys_.begin,
                     p_.value_dim);
    grad_keys_ = grad_keys.rows();
    grad_values_ = grad_values.rows();
    for (std::int64_t h = first_head; h < last_head; h++) run_head(h);
    grad_keys.write(1.0f);
    grad_values.write(1.0f);
  }

 private:
  // Rows of a gradient while they are summed up: in the result itself where it has float32 and whole
  // vectors, else in scratch memory.
  class Sums {
   public:
    Sums(void* result, std::int64_t row, std::int64_t count, std::int64_t size)
        : result_(result == nullptr ? nullptr : static_cast<T*>(result) + row * size),
          count_(result == nullptr ? 0 : count),
          size_(size),
          padded_(round_up(size, kWidth)),
          in_place_(is_packed<T>(size, size)),
          buffer_(in_place_ ? 0 : count_ * padded_) {
      set_to_zero(rows(), sizeof(float) * static_cast<std::size_t>(count_ * padded_));
    }

    float* rows() { return in_place_ ? reinterpret_cast<float*>(result_) : buffer_.data(); }

    void write(float factor) {
      if (!in_place_) {
        unpack_rows(rows(), padded_, count_, size_, factor, result_);
      } else if (factor != 1.0f) {
        const Vector f = Vector::all(factor);
        for (std::int64_t i = 0; i < count_ * padded_; i += kWidth) {
          Vector::load(rows() + i).times(f).store(rows() + i);
        }
      }
    }

   private:
    T* result_;
    std::int64_t count_, size_, padded_;
    bool in_place_;
    Buffer buffer_;
  };

  bool is_finite(const View& view, std::int64_t head, std::int64_t rows, std::int64_t size) {
    const std::int64_t padded = round_up(size, kWidth);
    Buffer buffer(kQueryTile * padded);
    for (std::int64_t i = 0; i < rows; i += kQueryTile) {
      const int count = static_cast<int>(least(kQueryTile, rows - i));
      const T* in = row_of<T>(view, batch_, head, i);
      if (!all_finite(packed_rows(in, view.row, count, size, buffer), count, padded)) return false;
    }
    return true;
  }

  void run_head(std::int64_t head_index) {
    // What is not finite makes NaN of a zero, as in the plain formula, so nothing may be skipped.
    is_finite_ = are_keys_finite_ && is_finite(p_.query, head_index, p_.queries, p_.dim) &&
                 is_finite(result_.grad_output, head_index, p_.queries, p_.value_dim);
    const std::int64_t count = queries_.end - queries_.begin;
    Scorer<T> scorer(p_, batch_, head_index, queries_.begin, queries_.end,
                     Scorer<T>::Screening::never);
    const std::int64_t row = scorer.head.row(queries_.begin);
    Sums grad_queries(want_queries_ ? result_.grad_query : nullptr, row, count, p_.dim);
    if (want_queries_ && result_.grad_rows != nullptr) {
      set_to_zero(result_.grad_rows + row, sizeof(float) * static_cast<std::size_t>(count));
    }
    const T* upstream = row_of<T>(result_.grad_output, batch_, head_index, queries_.begin);
    Buffer upstream_buffer(
        is_packed<T>(result_.grad_output.row, p_.value_dim) ? 0 : count * value_dim_);
    const Rows grad_output = packed_rows(upstream, result_.grad_output.row, static_cast<int>(count),
                                         p_.value_dim, upstream_buffer);
    for (std::int64_t key = keys_.begin; key < keys_.end; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, keys_.end - key));
      scorer.take_keys(key, columns);
      values_ = packed_rows(row_of<T>(p_.value, batch_, key_head_, key), p_.value.row, columns,
                            p_.value_dim, values_buffer_);
      has_values_t_ = false;
      for (std::int64_t q = 0; q < count; q += kQueryTile) {
        const int rows = static_cast<int>(least(kQueryTile, count - q));
        if (is_finite_ && scorer.head.causal_end(queries_.begin + q + rows - 1) <= key) continue;
        const Place place{queries_.begin + q, key, scorer.queries(q), grad_output.from(q),
                          grad_queries.rows() + q * dim_};
        const bool has_scores = find_bits(scorer, q, rows, key, columns);
        if (is_finite_ && tile_.total == 0) continue;
        if (!is_finite_ || tile_.is_dense()) {
          if (!has_scores) scorer.fill_all(q, rows, tile_);
          add_dense(scorer, place);
        } else {
          for (int first = 0; first < columns; first += 64) add_sparse(scorer, place, first);
        }
      }
    }
    grad_queries.write(p_.scale);
  }

  // Where a tile is: its first query and key, rows of queries and of their gradients.
  struct Place {
    std::int64_t query, key;
    Rows queries, grad_output;
    float* grad_queries;
  };

  // Which scores of a tile are above the threshold. Returns whether the scores are there, too.
  bool find_bits(Scorer<T>& scorer, std::int64_t q, int rows, std::int64_t key, int columns) {
    if (result_.bits == nullptr || !is_finite_) {
      scorer.fill_all(q, rows, tile_);
      return true;
    }
    tile_.start(rows, columns);
    const std::int64_t stride = words_per_row(p_);
    const std::uint64_t* words =
        result_.bits + scorer.head.row(queries_.begin + q) * stride + key / 64;
    for (int i = 0; i < rows; i++, words += stride) {
      for (int w = 0; w < kWords; w++) {
        tile_.bits[i].words[w] = 64 * w < columns ? words[w] : 0;
        tile_.total += count_bits(tile_.bits[i].words[w]);
      }
    }
    return false;
  }

  // From rectified scores to weights as forward used them, and to gradients of the scores. The query
  // of an entry and its key: first_query + query_step * list[t], first_key + key_step * list[t].
  void weigh(const Head& head, std::int64_t first_query, int query_step, std::int64_t first_key,
             int key_step, const std::uint8_t* list, int length, float* weights, float* gradients) {
    if (p_.power == 2) {
      for (int t = 0; t < length; t++) {
        gradients[t] *= 2.0f * weights[t];
        weights[t] *= weights[t];
      }
    }
    if (p_.dropout > 0.0f) {
      for (int t = 0; t < length; t++) {
        const float kept =
            head.kept(first_query + query_step * list[t], first_key + key_step * list[t]);
        gradients[t] *= kept;
        weights[t] *= kept;
      }
    }
  }

  // A tile with many non-zeros: products of matrices.
  void add_dense(Scorer<T>& scorer, const Place& place) {
    if (!has_values_t_) transpose(values_, value_dim_, tile_.columns, values_t_);
    has_values_t_ = true;
    products(place.grad_output, values_t_, p_.value_dim, 0.0f, tile_.rows, tile_.columns, matrix_);
    if (!weighs_) {
      tile_.clear_zeros(matrix_);
    } else {
      tile_.list_scores();
      for (int i = 0; i < tile_.rows; i++) {
        float* gradients = numbers_ + i * Tile::kNumbersRoom;
        tile_.list_numbers(i, matrix_ + i * kKeyTile, gradients);
        weigh(scorer.head, place.query + i, 0, place.key, 1, tile_.list(i), tile_.lengths[i],
              tile_.weight_row(i), gradients);
      }
      tile_.unlist(tile_.weights, tile_.scores);
      tile_.unlist(numbers_, matrix_);
    }
    if (want_queries_) {
      add_products(place.grad_queries, dim_, tile_.rows, matrix_, kKeyTile, 1, scorer.keys(), dim_,
                   tile_.columns);
      for (int i = 0; result_.grad_rows != nullptr && i < tile_.rows; i++) {
        float sum = 0.0f;
        for (int j = 0; j < tile_.columns; j++) sum += matrix_[i * kKeyTile + j];
        result_.grad_rows[scorer.head.row(place.query + i)] += sum;
      }
    }
    if (want_keys_) {
      add_products(value_sums(place.key), value_dim_, tile_.columns, tile_.scores, 1, kKeyTile,
                   place.grad_output, value_dim_, tile_.rows);
      add_products(key_sums(place.key), dim_, tile_.columns, matrix_, 1, kKeyTile, place.queries,
                   dim_, tile_.rows);
    }
  }

  // A tile with few: key by key, with a list of the queries that attend to it, so that the sums of a
  // key and its value stay in registers. 64 keys from `first` on; in passes, each of which has its
  // rows in the first cache.
  void add_sparse(Scorer<T>& scorer, const Place& place, int first) {
    const int keys = static_cast<int>(least(64, tile_.columns - first));
    std::uint64_t words[64];
    for (int i = 0; i < 64; i++) words[i] = i < tile_.rows ? tile_.bits[i].words[first / 64] : 0;
    transpose_bits(words);
    int lengths[64];
    const Rows key_rows = scorer.keys().from(first), value_rows = values_.from(first);
    for (int j = 0; j < keys; j++) {
      lengths[j] = append_positions(words[j], 0, tile_.list(j), 0);
      pad_list(tile_.list(j), lengths[j]);
    }
    // A head of the usual 64 features has code of its own.
    const bool usual = dim_ == 4 * kWidth && value_dim_ == 4 * kWidth &&
                       key_rows.stride == dim_ && value_rows.stride == value_dim_ &&
                       place.grad_output.stride == value_dim_;
    for (int j = 0; j < keys; j++) {
      float *weights = tile_.weight_row(j), *gradients = gradient_row(j);
      if (usual && !scorer.head.has_bias()) {
        fill_key_lists<4>(key_rows[j], value_rows[j], place.queries.data, place.grad_output.data,
                          tile_.list(j), lengths[j], -scorer.head.threshold(), weights, gradients);
      } else {
        fill_lists(scorer.head, place, first + j, key_rows[j], value_rows[j], tile_.list(j),
                   lengths[j], weights, gradients);
      }
    }
    for (int j = 0; j < keys; j++) {
      float *weights = tile_.weight_row(j), *gradients = gradient_row(j);
      if (lengths[j] == 0) continue;
      if (weighs_) {
        weigh(scorer.head, place.query, 1, place.key + first + j, 0, tile_.list(j), lengths[j],
              weights, gradients);
      }
      if (usual && want_keys_) {
        add_rows_twice<4>(value_sums(place.key + first + j), place.grad_output.data, weights,
                          key_sums(place.key + first + j), place.queries.data, gradients,
                          tile_.list(j), lengths[j]);
      } else if (want_keys_) {
        add_lists(place, first + j, tile_.list(j), lengths[j], weights, gradients);
      }
    }
    for (int j = 0; want_queries_ && j < keys; j++) {
      spread_row(place.grad_queries, key_rows[j], dim_, tile_.list(j), gradient_row(j), lengths[j]);
    }
    for (int j = 0; want_queries_ && result_.grad_rows != nullptr && j < keys; j++) {
      float* sums = result_.grad_rows + scorer.head.row(place.query);
      for (int t = 0; t < lengths[j]; t++) sums[tile_.list(j)[t]] += gradient_row(j)[t];
    }
  }

  // What fill_key_lists does, for rows of any size.
  void fill_lists(const Head& head, const Place& place, int j, const float* key, const float* value,
                  const std::uint8_t* list, int length, float* weights, float* gradients) {
    dot_rows(key, place.queries, dim_, list, length, weights);
    dot_rows(value, place.grad_output, value_dim_, list, length, gradients);
    for (int t = 0; head.has_bias() && t < length; t++) {
      head.add_bias(place.query + list[t], place.key + j, 1, weights + t);
    }
    const Vector minus_threshold = Vector::all(-head.threshold());
    for (int t = 0; t < length; t += kWidth) {
      Vector::load(weights + t).plus(minus_threshold).at_least_zero().store(weights + t);
    }
  }

  // What the listed queries add to the gradients of a key and its value.
  void add_lists(const Place& place, int j, const std::uint8_t* list, int length, float* weights,
                 float* gradients) {
    pad_numbers(weights, length);
    pad_numbers(gradients, length);
    add_rows(value_sums(place.key + j), place.grad_output.data, place.grad_output.stride,
             value_dim_, list, weights, length);
    add_rows(key_sums(place.key + j), place.queries.data, dim_, dim_, list, gradients, length);
  }

  float* gradient_row(int i) { return numbers_ + i * Tile::kNumbersRoom; }
  float* key_sums(std::int64_t key) { return grad_keys_ + (key - keys_.begin) * dim_; }
  float* value_sums(std::int64_t key) { return grad_values_ + (key - keys_.begin) * value_dim_; }

  const Problem& p_;
  const BackwardResult& result_;
  const std::int64_t batch_, key_head_;
  const Range queries_, keys_;
  const bool want_queries_, want_keys_;
  const bool weighs_ = p_.power != 1 || p_.dropout > 0.0f;  // a weight is not the rectified score
  const std::int64_t dim_ = round_up(p_.dim, kWidth), value_dim_ = round_up(p_.value_dim, kWidth);
  float *grad_keys_ = nullptr, *grad_values_ = nullptr;
  Buffer values_buffer_{kKeyTile * value_dim_}, values_t_{value_dim_ * kKeyTile};
  Buffer numbers_{kQueryTile * Tile::kNumbersRoom};  // gradients of the listed scores
  Buffer matrix_{kQueryTile * kKeyTile};             // of all scores, where the work is dense
  Rows values_{nullptr, 0};
  bool are_keys_finite_ = false, is_finite_ = false, has_values_t_ = false;
  Tile tile_;
};

template <class T>
void backward_all(const Problem& p, const BackwardResult& result, int threads) {
  struct Work {
    const Problem& p;
    const BackwardResult& result;
    std::int64_t blocks;
  } work{p, result, 1};
  if (p.batch * p.key_heads >= threads) {
    run_parallel(
        p.batch * p.key_heads, threads,
        [](void* data, std::int64_t task) {
          const Work& w = *static_cast<const Work*>(data);
          const std::int64_t key_head = task % w.p.key_heads, group = w.p.heads / w.p.key_heads;
          BackwardTask<T>(w.p, w.result, task / w.p.key_heads, key_head, {0, w.p.queries},
                          {0, w.p.keys}, true, true)
              .run(key_head * group, (key_head + 1) * group);
        },
        &work);
    return;
  }
  // Fewer heads than threads: blocks of queries first, then blocks of keys. Scores are computed for
  // both, but all threads have work.
  work.blocks = (p.queries + kBackwardBlock - 1) / kBackwardBlock;
  run_parallel(
      p.batch * p.heads * work.blocks, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t begin = task % w.blocks * kBackwardBlock, pair = task / w.blocks;
        const std::int64_t head = pair % w.p.heads;
        BackwardTask<T>(w.p, w.result, pair / w.p.heads, head / (w.p.heads / w.p.key_heads),
                        {begin, least(begin + kBackwardBlock, w.p.queries)}, {0, w.p.keys}, true, false)
            .run(head, head + 1);
      },
      &work);
  work.blocks = (p.keys + kBackwardBlock - 1) / kBackwardBlock;
  run_parallel(
      p.batch * p.key_heads * work.blocks, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t begin = task % w.blocks * kBackwardBlock, pair = task / w.blocks;
        const std::int64_t key_head = pair % w.p.key_heads, group = w.p.heads / w.p.key_heads;
        BackwardTask<T>(w.p, w.result, pair / w.p.key_heads, key_head, {0, w.p.queries},
                        {begin, least(begin + kBackwardBlock, w.p.keys)}, false, true)
            .run(key_head * group, (key_head + 1) * group);
      },
      &work);
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
