// The gradients. Part of kernels.inc.h.

#include "parallel.h"

namespace relakit::RELAKIT_ISA {
namespace {

// The gradients of one key head: those of all query heads that share it, one after the other.
template <class T>
class BackwardTask {
 public:
  BackwardTask(const Problem& p, const BackwardResult& result, std::int64_t batch,
               std::int64_t key_head)
      : p_(p), result_(result), batch_(batch), key_head_(key_head) {}

  void run() {
    const std::int64_t group = p_.heads / p_.key_heads;
    are_keys_finite_ = is_head_finite(p_.key, key_head_, p_.keys, p_.dim) &&
                       is_head_finite(p_.value, key_head_, p_.keys, p_.value_dim);
    for (std::int64_t h = key_head_ * group; h < (key_head_ + 1) * group; h++) run_head(h);
    const std::int64_t row = (batch_ * p_.key_heads + key_head_) * p_.keys;
    unpack_rows(grad_keys_.data(), dim_, p_.keys, p_.dim, 1.0f,
                static_cast<T*>(result_.grad_key) + row * p_.dim);
    unpack_rows(grad_values_.data(), value_dim_, p_.keys, p_.value_dim, 1.0f,
                static_cast<T*>(result_.grad_value) + row * p_.value_dim);
  }

 private:
  bool is_head_finite(const View& view, std::int64_t head, std::int64_t rows, std::int64_t size) {
    const std::int64_t padded = round_up(size, kWidth);
    Buffer packed(kQueryTile * padded);
    for (std::int64_t i = 0; i < rows; i += kQueryTile) {
      const int count = static_cast<int>(least(kQueryTile, rows - i));
      pack_rows(row_of<T>(view, batch_, head, i), view.row, count, size, padded, 1.0f, packed);
      if (!all_finite(packed, count * padded)) return false;
    }
    return true;
  }

  void run_head(std::int64_t head_index) {
    const Head head(p_, batch_, head_index);
    // What is not finite makes NaN of a zero, as in the plain formula, so nothing may be skipped.
    const bool is_finite = are_keys_finite_ &&
                           is_head_finite(p_.query, head_index, p_.queries, p_.dim) &&
                           is_head_finite(result_.grad_output, head_index, p_.queries, p_.value_dim);
    Buffer grad_queries(p_.queries * dim_, Start::zero);
    double grad_threshold = 0.0;
    for (std::int64_t key = 0; key < p_.keys; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, p_.keys - key));
      pack_rows(row_of<T>(p_.key, batch_, key_head_, key), p_.key.row, columns, p_.dim, dim_, 1.0f,
                keys_);
      transpose(keys_, dim_, columns, keys_t_);
      pack_rows(row_of<T>(p_.value, batch_, key_head_, key), p_.value.row, columns, p_.value_dim,
                value_dim_, 1.0f, values_);
      has_values_t_ = false;
      const std::int64_t first = p_.causal && is_finite ? key / kQueryTile * kQueryTile : 0;
      for (std::int64_t query = first; query < p_.queries; query += kQueryTile) {
        const int rows = static_cast<int>(least(kQueryTile, p_.queries - query));
        pack_rows(row_of<T>(p_.query, batch_, head_index, query), p_.query.row, rows, p_.dim, dim_,
                  p_.scale, queries_);
        const int total = fill_tile(head, queries_, dim_, keys_t_, p_.dim, query, rows, key,
                                    columns, tile_);
        if (total == 0 && is_finite) continue;
        pack_rows(row_of<T>(result_.grad_output, batch_, head_index, query),
                  result_.grad_output.row, rows, p_.value_dim, value_dim_, 1.0f, grad_output_);
        const bool dense_dots = !is_finite || is_dense(total, rows, columns, kDenseDots);
        grad_threshold += fill_gradients(head, query, rows, key, columns, dense_dots);
        if (!is_finite || is_dense(total, rows, columns, kDenseSums)) {
          add_dense(grad_queries + query * dim_, rows, key, columns);
        } else {
          add_sparse(grad_queries + query * dim_, rows, key, columns);
        }
      }
    }
    const std::int64_t row = (batch_ * p_.heads + head_index) * p_.queries;
    unpack_rows(grad_queries.data(), dim_, p_.queries, p_.dim, p_.scale,
                static_cast<T*>(result_.grad_query) + row * p_.dim);
    if (result_.grad_threshold != nullptr) {
      result_.grad_threshold[batch_ * p_.heads + head_index] = static_cast<float>(-grad_threshold);
    }
  }

  // gradients_: of the scores. tile_.scores: from rectified scores to weights, as forward used them.
  // Returns the sum of the gradients.
  double fill_gradients(const Head& head, std::int64_t query, int rows, std::int64_t key,
                        int columns, bool dense) {
    if (dense) {
      if (!has_values_t_) transpose(values_, value_dim_, columns, values_t_);
      has_values_t_ = true;
      products(grad_output_, value_dim_, values_t_, p_.value_dim, 0.0f, rows, columns, gradients_);
    } else {
      for (int i = 0; i < rows; i++) {
        dot_rows(grad_output_ + i * value_dim_, values_, value_dim_, tile_.list(i),
                 tile_.lengths[i], gradients_ + i * kKeyTile);
      }
    }
    double total = 0.0;
    for (int i = 0; i < rows; i++) {
      float *weights = tile_.row(i), *gradients = gradients_ + i * kKeyTile;
      const std::uint8_t* list = tile_.list(i);
      const int length = tile_.lengths[i];
      if (p_.power == 2) {
        for (int t = 0; t < length; t++) {
          const int j = list[t];
          gradients[j] *= 2.0f * weights[j];
          weights[j] *= weights[j];
        }
      }
      if (p_.dropout > 0.0f) {
        for (int t = 0; t < length; t++) {
          const int j = list[t];
          const float kept = head.kept(query + i, key + j);
          gradients[j] *= kept;
          weights[j] *= kept;
        }
      }
      total += sum_of(gradients, list, length);
    }
    return total;
  }

  static float sum_of(const float* numbers, const std::uint8_t* list, int length) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};  // four at a time: an addition waits for the last one
    int t = 0;
    for (; t + 4 <= length; t += 4) {
      for (int u = 0; u < 4; u++) sum[u] += numbers[list[t + u]];
    }
    for (; t < length; t++) sum[0] += numbers[list[t]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  void add_dense(float* grad_queries, int rows, std::int64_t key, int columns) {
    clear_unlisted(tile_, rows, columns, tile_.scores);
    clear_unlisted(tile_, rows, columns, gradients_);
    add_products(grad_queries, rows, gradients_, kKeyTile, 1, keys_, dim_, columns);
    add_products(grad_values_ + key * value_dim_, columns, tile_.scores, 1, kKeyTile, grad_output_,
                 value_dim_, rows);
    add_products(grad_keys_ + key * dim_, columns, gradients_, 1, kKeyTile, queries_, dim_, rows);
  }

  void add_sparse(float* grad_queries, int rows, std::int64_t key, int columns) {
    for (int i = 0; i < rows; i++) {
      add_rows(grad_queries + i * dim_, keys_, dim_, tile_.list(i), tile_.lengths[i],
               gradients_ + i * kKeyTile, 1);
    }
    add_columns(rows, key, columns);
  }

  // Keys and values: column by column, so that a column's sums stay in registers.
  void add_columns(int rows, std::int64_t key, int columns) {
    std::uint8_t list[kQueryTile + 64];
    for (int w = 0; 64 * w < columns; w++) {
      std::uint64_t words[64];
      for (int i = 0; i < 64; i++) words[i] = i < rows ? tile_.bits[i][w] : 0;
      transpose_bits(words);
      for (int j = 64 * w; j < least(64 * (w + 1), columns); j++) {
        if (words[j - 64 * w] == 0) continue;
        const int length = append_positions(words[j - 64 * w], 0, list, 0);
        if (dim_ == 4 * kWidth && value_dim_ == 4 * kWidth) {  // a head of the usual 64 features
          add_rows_twice<4>(grad_values_ + (key + j) * value_dim_, grad_output_, tile_.scores + j,
                            grad_keys_ + (key + j) * dim_, queries_, gradients_ + j, list, length,
                            kKeyTile);
          continue;
        }
        add_rows(grad_values_ + (key + j) * value_dim_, grad_output_, value_dim_, list, length,
                 tile_.scores + j, kKeyTile);
        add_rows(grad_keys_ + (key + j) * dim_, queries_, dim_, list, length, gradients_ + j,
                 kKeyTile);
      }
    }
  }

  const Problem& p_;
  const BackwardResult& result_;
  const std::int64_t batch_, key_head_;
  const std::int64_t dim_ = round_up(p_.dim, kWidth), value_dim_ = round_up(p_.value_dim, kWidth);
  Buffer grad_keys_{p_.keys * dim_, Start::zero};
  Buffer grad_values_{p_.keys * value_dim_, Start::zero};
  Buffer keys_{kKeyTile * dim_}, keys_t_{dim_ * kKeyTile};
  Buffer values_{kKeyTile * value_dim_}, values_t_{value_dim_ * kKeyTile};
  Buffer queries_{kQueryTile * dim_}, grad_output_{kQueryTile * value_dim_};
  Buffer gradients_{kQueryTile * kKeyTile};
  bool are_keys_finite_ = false, has_values_t_ = false;
  Tile tile_;
};

template <class T>
void backward_all(const Problem& p, const BackwardResult& result, int threads) {
  struct Work {
    const Problem& p;
    const BackwardResult& result;
  } work{p, result};
  run_parallel(
      p.batch * p.key_heads, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        BackwardTask<T>(w.p, w.result, task / w.p.key_heads, task % w.p.key_heads).run();
      },
      &work);
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
