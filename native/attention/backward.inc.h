// The gradients of query, key and value (and the sums of the scores' gradients, for thresholds),
// tile by tile: dense where a tile has many non-zeros, along lists where it has few. Part of
// kernels.inc.h.

namespace relakit::attention::RELAKIT_ISA {
namespace {

// With fewer queries, dense products are never faster, because they need the values transposed.
constexpr int kLeastQueriesForDense = 5;
// More than in forward, as there are gradients to fetch too.
constexpr int kLinesPerRowBackward = 2 * kLinesPerRow;

// The gradients of a range of queries, of a range of keys and values, or of both, for one key head
// and all query heads that share it, one after the other.
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

  // Let run() fetch the rows of the key head that this thread is likely to work on next, and those
  // of the first query head that shares it.
  void fetch_ahead(const BackwardJob& job, std::int64_t batch, std::int64_t key_head) {
    const Problem& p = job.problem;
    const BackwardResult& result = job.result;
    const std::int64_t head = key_head * (p.heads / p.key_heads);
    const auto fetch = [&](const auto& place, std::int64_t index, std::int64_t size,
                           std::int64_t rows) {
      ahead_.add_rows(row_of<T>(place, batch, index, 0), size, place.row, rows);
    };
    fetch(p.key, key_head, p.dim, p.keys);
    fetch(p.value, key_head, p.value_dim, p.keys);
    fetch(p.query, head, p.dim, p.queries);
    fetch(result.grad_output, head, p.value_dim, p.queries);
    fetch(result.grad_query, head, p.dim, p.queries);
    fetch(result.grad_key, key_head, p.dim, p.keys);
    fetch(result.grad_value, key_head, p.value_dim, p.keys);
  }

  void run(std::int64_t first_head, std::int64_t last_head) {
    are_keys_finite_ = is_finite(p_.key, key_head_, p_.keys, p_.dim) &&
                       is_finite(p_.value, key_head_, p_.keys, p_.value_dim);
    const std::int64_t count = want_keys_ ? keys_.end - keys_.begin : 0;
    GradientSums<T> grad_keys(row_of<T>(result_.grad_key, batch_, key_head_, keys_.begin),
                   result_.grad_key.row, count, p_.dim);
    GradientSums<T> grad_values(row_of<T>(result_.grad_value, batch_, key_head_, keys_.begin),
                     result_.grad_value.row, count, p_.value_dim);
    grad_keys_ = grad_keys.rows();
    grad_values_ = grad_values.rows();
    for (std::int64_t h = first_head; h < last_head; h++) run_head(h);
    grad_keys.write(1.0f);
    grad_values.write(1.0f);
  }

 private:
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
    // As in the plain formula, a zero weight times inf or NaN is NaN, so nothing may be skipped.
    is_finite_ = are_keys_finite_ && is_finite(p_.query, head_index, p_.queries, p_.dim) &&
                 is_finite(result_.grad_output, head_index, p_.queries, p_.value_dim);
    const std::int64_t count = queries_.end - queries_.begin;
    Scorer<T> scorer(p_, batch_, head_index, queries_.begin, queries_.end, {false, true, true}, ahead_);
    const std::int64_t row = scorer.head.row(queries_.begin);
    GradientSums<T> grad_queries(row_of<T>(result_.grad_query, batch_, head_index, queries_.begin),
                      result_.grad_query.row, want_queries_ ? count : 0, p_.dim);
    if (want_queries_ && result_.grad_rows != nullptr) {
      set_to_zero(result_.grad_rows + row, sizeof(float) * static_cast<std::size_t>(count));
    }
    const T* upstream = row_of<T>(result_.grad_output, batch_, head_index, queries_.begin);
    Buffer upstream_buffer(
        is_packed<T>(result_.grad_output.row, p_.value_dim) ? 0 : count * value_dim_);
    const Rows grad_output = packed_rows(upstream, result_.grad_output.row, static_cast<int>(count),
                                         p_.value_dim, upstream_buffer);
    PairProducts<T> pairs(upstream, result_.grad_output.row, count, p_.value_dim);
    for (std::int64_t key = keys_.begin; key < keys_.end; key += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, keys_.end - key));
      if (is_finite_ && !scorer.head.reaches(queries_.begin, count, key, columns)) continue;
      scorer.take_keys(key, columns);
      const Rows keys = scorer.keys();
      const T* values = row_of<T>(p_.value, batch_, key_head_, key);
      values_ = packed_rows(values, p_.value.row, columns, p_.value_dim, values_buffer_);
      pairs.take_columns(values, p_.value.row, columns);
      has_values_t_ = false;
      for (std::int64_t q = 0; q < count; q += kQueryTile) {
        const int rows = static_cast<int>(least(kQueryTile, count - q));
        scorer.fetch_next_mask(q, rows);
        if (is_finite_ && !scorer.head.reaches(queries_.begin + q, rows, key, columns)) continue;
        const Place place{queries_.begin + q, key, scorer.queries(q), keys,
                          grad_output.from(q), grad_queries.rows() + q * dim_};
        const bool has_scores = find_bits(scorer, q, rows, key, columns);
        if (is_finite_ && tile_.total == 0) continue;
        const bool has_many = tile_.has_more_than(thresholds_for<T>().dense_backward);
        if (!is_finite_ || (rows >= kLeastQueriesForDense && has_many)) {
          if (!has_scores) scorer.fill_all(q, rows, tile_);
          find_gradients(pairs, q, place);
          add_dense(scorer, place);
        } else {
          add_sparse(scorer, place);
        }
      }
    }
    grad_queries.write(p_.scale);
  }

  // Where a tile is: its first query and key, the rows from there on, and the queries' gradients.
  struct Place {
    std::int64_t query, key;
    Rows queries, keys, grad_output;
    float* grad_queries;
  };

  // Find the scores of a tile that are above the threshold. Returns whether the tile now holds the
  // scores too.
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

  // Turn a query's rectified scores into the weights that forward used, and the gradients of the
  // weights into gradients of the scores.
  void weigh(const Head& head, std::int64_t query, std::int64_t first_key, const std::uint8_t* list,
             int length, float* weights, float* gradients) {
    if (p_.power == 2) {
      for (int t = 0; t < length; t++) {
        gradients[t] *= 2.0f * weights[t];
        weights[t] *= weights[t];
      }
    }
    if (p_.dropout > 0.0f) {
      for (int t = 0; t < length; t++) {
        const float kept = head.kept(query, first_key + list[t]);
        gradients[t] *= kept;
        weights[t] *= kept;
      }
    }
  }

  // For a tile with many non-zeros: find the gradients of its weights, 0 where the score is not
  // above zero.
  void find_gradients(PairProducts<T>& pairs, std::int64_t q, const Place& place) {
    const auto columns = [&](int) { return tile_.columns; };
    if (pairs.take_rows(q, tile_.rows)) {
      pairs.multiply(q, tile_.rows, 1.0f, 0.0f, columns, ahead_, tile_.choose(matrix_));
      return;
    }
    if (!has_values_t_) transpose(values_, value_dim_, tile_.columns, values_t_);
    has_values_t_ = true;
    products<FloatSums>(place.grad_output, tile_.rows, values_t_, value_dim_, 0.0f, columns, ahead_,
                        tile_.choose(matrix_));
  }

  // Then add to the gradients of queries, keys and values with matrix products.
  void add_dense(Scorer<T>& scorer, const Place& place) {
    if (weighs_) {
      tile_.list_scores();
      for (int i = 0; i < tile_.rows; i++) {
        float* gradients = gradient_row(i);
        tile_.list_numbers(i, matrix_ + i * kScoreRow, gradients);
        weigh(scorer.head, place.query + i, place.key, tile_.list(i), tile_.lengths[i],
              tile_.weight_row(i), gradients);
      }
      tile_.unlist(tile_.weights, tile_.scores);
      tile_.unlist(numbers_, matrix_);
    }
    if (want_queries_) {
      add_products(place.grad_queries, dim_, tile_.rows, Weights<false>{matrix_}, place.keys, dim_,
                   tile_.columns, ahead_);
      for (int i = 0; result_.grad_rows != nullptr && i < tile_.rows; i++) {
        float sum = 0.0f;
        for (int j = 0; j < tile_.columns; j++) sum += matrix_[i * kScoreRow + j];
        result_.grad_rows[scorer.head.row(place.query + i)] += sum;
      }
    }
    if (want_keys_) {
      add_products(value_sums(place.key), value_dim_, tile_.columns, Weights<true>{tile_.scores},
                   place.grad_output, value_dim_, tile_.rows, ahead_);
      add_products(key_sums(place.key), dim_, tile_.columns, Weights<true>{matrix_}, place.queries,
                   dim_, tile_.rows, ahead_);
    }
  }

  // For a tile with few non-zeros. First, query by query, along lists of keys: the weights, the
  // gradients of the scores, the gradient of the query. Then, key by key: sums over the queries
  // that attend to it. Each pass finds its rows in the first-level cache, and sums stay in
  // registers while they grow.
  void add_sparse(Scorer<T>& scorer, const Place& place) {
    const Head& head = scorer.head;
    tile_.list_positions();
    for (int i = 0; i < tile_.rows; i++) {
      ahead_.fetch(kLinesPerRowBackward);
      const int length = tile_.lengths[i];
      dot_rows(place.grad_output[i], values_, value_dim_, tile_.list(i), length, gradient_row(i));
    }
    for (int i = 0; i < tile_.rows; i++) {  // so that the next pass finds the keys cached
      ahead_.fetch(kLinesPerRowBackward);
      score_listed(head, place, i);
      if (weighs_) {
        weigh(head, place.query + i, place.key, tile_.list(i), tile_.lengths[i],
              tile_.weight_row(i), gradient_row(i));
      }
    }
    for (int i = 0; want_queries_ && i < tile_.rows; i++) {
      ahead_.fetch(kLinesPerRowBackward);
      add_rows(place.grad_queries + i * dim_, place.keys.data, place.keys.stride, dim_,
               tile_.list(i), gradient_row(i), tile_.lengths[i]);
    }
    for (int i = 0; want_queries_ && result_.grad_rows != nullptr && i < tile_.rows; i++) {
      float sum = 0.0f;
      for (int t = 0; t < tile_.lengths[i]; t++) sum += gradient_row(i)[t];
      result_.grad_rows[head.row(place.query + i)] += sum;
    }
    if (want_keys_) add_to_keys(place);
  }

  // The rectified scores of query i of the tile with the listed keys.
  void score_listed(const Head& head, const Place& place, int i) {
    const std::uint8_t* list = tile_.list(i);
    const int length = tile_.lengths[i];
    float* weights = tile_.weight_row(i);
    if (!head.has_bias()) {
      // Rounded differently from forward, a score may end up just below the threshold.
      score_rows(place.queries[i], place.keys, dim_, list, length, -head.threshold(), weights);
      return;
    }
    dot_rows(place.queries[i], place.keys, dim_, list, length, weights);
    for (int t = 0; t < length; t++) {
      head.add_bias(place.query + i, place.key + list[t], 1, weights + t);
    }
    rectify_list(weights, length, -head.threshold());
  }

  // Add the contributions of the listed weights and gradients to the gradients of keys and values.
  void add_to_keys(const Place& place) {
    for (int i = 0; i < tile_.rows; i++) {
      const std::uint8_t* list = tile_.list(i);
      const int length = tile_.lengths[i];
      float pairs[2 * Tile::kNumbersRoom];
      for (int t = 0; t < length; t += kWidth) {
        store_pairs(Vector::load(tile_.weight_row(i) + t), Vector::load(gradient_row(i) + t),
                    pairs + 2 * t);
      }
      float* column = pairs_ + 2 * i;
      for (int t = 0; t < length; t++) {
        std::memcpy(column + list[t] * (2 * kQueryTile), pairs + 2 * t, 2 * sizeof(float));
      }
    }
    const bool usual = dim_ == kHead * kWidth && value_dim_ == kHead * kWidth &&
                       place.grad_output.stride == value_dim_;
    for (int first = 0; first < tile_.columns; first += 64) {
      std::uint64_t words[64];
      for (int i = 0; i < 64; i++) words[i] = i < tile_.rows ? tile_.bits[i].words[first / 64] : 0;
      transpose_bits(words);
      const int end = static_cast<int>(least(64, tile_.columns - first));
      for (int j = 0; j < end; j++) {
        ahead_.fetch(kLinesPerRowBackward);
        const float* pairs = pairs_ + 2 * (first + j) * kQueryTile;
        float* value_sum = value_sums(place.key + first + j);
        float* key_sum = key_sums(place.key + first + j);
        if (usual) {
          add_chosen_pairs<kHead>(value_sum, place.grad_output.data, key_sum, place.queries.data,
                              words[j], pairs);
        } else {
          add_chosen_rows(value_sum, place.grad_output, value_dim_, words[j], pairs);
          add_chosen_rows(key_sum, place.queries, dim_, words[j], pairs + 1);
        }
      }
    }
  }

  float* gradient_row(int i) { return numbers_ + i * Tile::kNumbersRoom; }
  float* key_sums(std::int64_t key) { return grad_keys_ + (key - keys_.begin) * dim_; }
  float* value_sums(std::int64_t key) { return grad_values_ + (key - keys_.begin) * value_dim_; }

  const Problem& p_;
  const BackwardResult& result_;
  const std::int64_t batch_, key_head_;
  const Range queries_, keys_;
  const bool want_queries_, want_keys_;
  const bool weighs_ = p_.power != 1 || p_.dropout > 0.0f;  // weights are not the rectified scores
  const std::int64_t dim_ = round_up(p_.dim, kWidth), value_dim_ = round_up(p_.value_dim, kWidth);
  float *grad_keys_ = nullptr, *grad_values_ = nullptr;
  Buffer values_buffer_{kKeyTile * value_dim_}, values_t_{value_dim_ * kKeyTile};
  Buffer numbers_{kQueryTile * Tile::kNumbersRoom};  // gradients of the listed scores
  Buffer matrix_{kQueryTile * kScoreRow};            // gradients of all scores, in dense tiles
  Buffer pairs_{2 * kKeyTile * kQueryTile};          // a weight and a gradient per key and query
  Rows values_{nullptr, 0};
  PrefetchQueue ahead_;
  bool are_keys_finite_ = false, is_finite_ = false, has_values_t_ = false;
  Tile tile_;
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
