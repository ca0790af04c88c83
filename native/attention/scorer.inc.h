// Scorer: computes the scores of a block of queries, tile by tile, with screening where it pays.
// Part of kernels.inc.h.

#include <cstdint>

#include "attention/problem.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Stands for the share of scores that screening lets through, until it has been tried.
constexpr float kUnknown = -1.0f;

// The scores of a block of queries with one tile of keys after the other.
template <class T>
class Scorer {
 public:
  // What `fill` has to find. Lists that need not be exact may hold some zeros, which do not affect
  // sums along them and would take time to remove.
  struct Wishes {
    bool screening, exact_lists, bits;
  };

  Scorer(const Problem& p, std::int64_t batch, std::int64_t head_index, std::int64_t begin,
         std::int64_t end, Wishes wishes, PrefetchQueue& ahead)
      : head(p, batch, head_index),
        p_(p),
        ahead_(ahead),
        batch_(batch),
        begin_(begin),
        count_(end - begin),
        packed_(count_ * dim_),
        wishes_(wishes),
        may_screen_(Screen::kIsAvailable && wishes.screening && !head.has_bias() &&
                    least(p.queries, p.keys) >= thresholds_for<T>().least_to_screen),
        screen_(may_screen_ ? count_ : 0, may_screen_ ? dim_ : 0),
        pairs_(row_of<T>(p.query, batch, head_index, begin), p.query.row, count_, p.dim) {
    pack_rows(row_of<T>(p.query, batch, head_index, begin), p.query.row, static_cast<int>(count_),
              p.dim, dim_, p.scale, packed_);
  }

  const Head head;

  // Queries of the block from i on, times the scale.
  Rows queries(std::int64_t i) { return {packed_ + i * dim_, dim_}; }
  Rows keys() {
    if (keys_.data == nullptr) {
      keys_ = packed_rows(key_rows(), p_.key.row, columns_, p_.dim, keys_buffer_);
    }
    return keys_;
  }

  void take_keys(std::int64_t key, int columns) {
    key_ = key;
    columns_ = columns;
    keys_ = {nullptr, 0};  // packed when they are needed
    pairs_.take_columns(key_rows(), p_.key.row, columns);
    has_keys_t_ = has_screen_ = false;
    can_screen_ = may_screen_;
  }

  // Fetch the mask of the tile that follows the one with these queries.
  void fetch_next_mask(std::int64_t i, int rows) {
    const std::int64_t next = i + rows < count_ ? i + rows : 0;
    const std::int64_t key = next == 0 ? key_ + kKeyTile : key_;
    if (key >= p_.keys) return;
    head.fetch_mask(begin_ + next, least(kQueryTile, count_ - next), key,
                    least(kKeyTile, p_.keys - key), ahead_);
  }

  // Fill the tile of `rows` queries from query i of the block on: with lists alone where screening
  // pays, otherwise with all scores. `candidates` is the share of scores that screening let through
  // for these queries in the previous tile, kUnknown at first; it is updated. All choices depend on
  // queries and keys alone, so results do not depend on how the work is divided.
  void fill(std::int64_t i, int rows, float& candidates, Tile& tile) {
    tile.start(rows, columns_);
    const Sight sight = head.look(begin_ + i, rows, key_, columns_, tile.seen);
    if (sight == Sight::none) {
      for (int r = 0; r < rows; r++) tile.leave_empty(r);
      tile.has_lists = true;
      return;
    }
    // Compute only the scores that screening lets through. That pays while they are few.
    const float most = thresholds_for<T>().most_candidates;
    if (can_screen_ && candidates < most && take_keys_to_screen()) {
      if (candidates == kUnknown) candidates = take_queries_to_screen(i, tile);
      if (candidates < most) candidates = find_candidates(i, rows, tile);
      if (candidates < most) {
        check_candidates(i, tile);
        return;
      }
    }
    fill_scores(i, sight, tile);
    const float share = static_cast<float>(tile.total) / static_cast<float>(rows * columns_);
    candidates = share + Screen::kFalseCandidates < most ? kUnknown : 1.0f;
  }

  // Fill the tile with all scores, even those of keys that no query sees.
  void fill_all(std::int64_t i, int rows, Tile& tile) {
    tile.start(rows, columns_);
    fill_scores(i, head.look(begin_ + i, rows, key_, columns_, tile.seen), tile);
  }

 private:
  const T* key_rows() const { return row_of<T>(p_.key, batch_, head.key_head(), key_); }

  void fill_scores(std::int64_t i, Sight sight, Tile& tile) {
    const std::int64_t query = begin_ + i;
    const auto known = [&](int r) {
      return static_cast<int>(between(0, head.key_end(query + r) - key_, columns_));
    };
    for (int r = 0; r < tile.rows; r++) tile.bits[r] = KeyBits{};
    const auto score = [&](const auto& take) {
      if (pairs_.take_rows(i, tile.rows)) {
        pairs_.multiply(i, tile.rows, p_.scale, -head.threshold(), known, ahead_, take);
        return;
      }
      if (!has_keys_t_) transpose(keys(), dim_, columns_, keys_t_);
      has_keys_t_ = true;
      products<FloatSums>(queries(i), tile.rows, keys_t_, dim_, -head.threshold(), known, ahead_, take);
    };
    const int most = known(tile.rows - 1);
    if (!head.has_bias()) {
      score(tile.rectify(0));
    } else if (!head.is_bias_contiguous() || most % kWidth != 0) {
      score(Store{tile.scores});
      for (int r = 0; r < tile.rows; r++) {
        head.add_bias(query + r, key_, known(r), tile.score_row(r));
        tile.rectify_row(r, known(r));
      }
    } else if (head.is_bias_bfloat16()) {
      score(tile.rectify_biased(0, head.template bias<std::uint16_t>(query, key_),
                                head.bias_row_stride()));
    } else {
      score(tile.rectify_biased(0, head.template bias<float>(query, key_), head.bias_row_stride()));
    }
    for (int r = 0; r < tile.rows; r++) tile.finish_row(r, known(r), sight == Sight::all);
  }

  // Screen the scores. Returns the share that was let through.
  float find_candidates(std::int64_t i, int rows, Tile& tile) {
    const int found = screen_.find(i, rows, columns_, tile.seen, tile.bits);
    return static_cast<float>(found) / static_cast<float>(rows * columns_);
  }

  // Round the first few queries and, if screening lets little through for them, the rest. Returns
  // the share that was let through.
  float take_queries_to_screen(std::int64_t i, Tile& tile) {
    const int few = static_cast<int>(least(Screen::kBlock, tile.rows));
    const float threshold = head.threshold();
    if (!screen_.take_queries(queries(i), i, few, threshold)) return 1.0f;
    const float share = find_candidates(i, few, tile);
    if (share >= thresholds_for<T>().most_candidates) return share;
    const bool is_finite =
        screen_.take_queries(queries(i + few), i + few, tile.rows - few, threshold);
    return is_finite ? share : 1.0f;
  }

  bool take_keys_to_screen() {
    if (!has_screen_) {
      can_screen_ = screen_.take_keys(keys(), columns_);
      has_screen_ = true;
    }
    return can_screen_;
  }

  // Turn bits that say which scores may be above the threshold into lists of those that are. This
  // takes separate passes because what was just written in small pieces cannot be read in large
  // ones for a while.
  void check_candidates(std::int64_t i, Tile& tile) {
    tile.has_lists = true;
    const Rows listed = keys();
    if (!wishes_.exact_lists) {
      tile.list_positions();
      for (int r = 0; r < tile.rows; r++) {
        ahead_.fetch(kLinesPerRow);
        score_rows(queries(i + r)[0], listed, dim_, tile.list(r), tile.lengths[r],
                   -head.threshold(), tile.weight_row(r));
      }
      for (int r = 0; wishes_.bits && r < tile.rows; r++) {
        Screen::keep_bits(tile.weight_row(r), tile.list(r), tile.lengths[r], tile.bits[r]);
      }
      return;
    }
    int lengths[kQueryTile];
    for (int r = 0; r < tile.rows; r++) {
      lengths[r] = list_bits(tile.bits[r], candidate_list(r));
    }
    for (int r = 0; r < tile.rows; r++) {
      dot_rows(queries(i + r)[0], listed, dim_, candidate_list(r), lengths[r], candidate_row(r));
    }
    for (int r = 0; r < tile.rows; r++) {
      const int kept =
          Screen::keep_positive(candidate_row(r), -head.threshold(), candidate_list(r), lengths[r],
                                tile.weight_row(r), tile.list(r), tile.bits[r]);
      tile.finish_list(r, kept);
      tile.total += kept;
    }
  }

  float* candidate_row(int i) { return candidates_ + i * Tile::kNumbersRoom; }
  std::uint8_t* candidate_list(int i) {
    return reinterpret_cast<std::uint8_t*>(candidate_lists_.data()) + i * Tile::kPositionsRoom;
  }

  const Problem& p_;
  PrefetchQueue& ahead_;  // what to fetch meanwhile
  const std::int64_t batch_, begin_, count_;
  const std::int64_t dim_ = round_up(p_.dim, kWidth);
  Buffer packed_, keys_buffer_{kKeyTile * dim_}, keys_t_{dim_ * kKeyTile};
  Rows keys_{nullptr, 0};
  std::int64_t key_ = 0;
  int columns_ = 0;
  const Wishes wishes_;
  bool has_keys_t_ = false, has_screen_ = false, may_screen_, can_screen_ = false;
  Screen screen_;
  PairProducts<T> pairs_;
  Buffer candidates_{may_screen_ && wishes_.exact_lists ? kQueryTile * Tile::kNumbersRoom : 0};
  Buffer candidate_lists_{
      may_screen_ && wishes_.exact_lists ? kQueryTile * Tile::kPositionsRoom / 4 : 0};
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
