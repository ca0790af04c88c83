// The scores of a tile of queries and keys: found, rectified, listed. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/bits.h"
#include "attention/problem.h"

namespace relakit::RELAKIT_ISA {
namespace {

// Screening finds out in low precision which scores can be above the threshold, and computes those
// alone. It pays while they are few, and where many queries and keys share the cost of rounding them.
constexpr float kMostCandidates = 0.2f;
// What screening lets through besides what is above the threshold, at least.
constexpr float kFalseCandidates = 0.02f;
constexpr std::int64_t kLeastToScreen = 256;
constexpr float kUnknown = -1.0f;

// The list of the set bits, padded; returns its length.
int list_bits(const KeyBits& bits, std::uint8_t* list) {
  int length = 0;
  for (int w = 0; w < kWords; w++) length = append_positions(bits.words[w], 64 * w, list, length);
  pad_list(list, length);
  return length;
}

// Rectified scores: which of them are above zero, and the scores themselves, either all of them, or
// those above zero in lists.
struct Tile {
  static constexpr int kPositionsRoom = kKeyTile + 64;  // append_positions may write 64 bytes
  static constexpr int kNumbersRoom = kKeyTile + 32;    // store_chosen a vector, and padding
  static constexpr std::uint32_t kVectorBits = (1u << kWidth) - 1;

  Buffer scores{kQueryTile * kKeyTile};
  Buffer weights{kQueryTile * kNumbersRoom};
  Buffer positions{kQueryTile * kPositionsRoom / static_cast<int>(sizeof(float))};
  KeyBits seen[kQueryTile], bits[kQueryTile];
  int lengths[kQueryTile];  // of the lists
  int rows = 0, columns = 0, total = 0;
  bool has_lists = false;

  float* score_row(int i) { return scores + i * kKeyTile; }
  float* weight_row(int i) { return weights + i * kNumbersRoom; }
  std::uint8_t* list(int i) {
    return reinterpret_cast<std::uint8_t*>(positions.data()) + i * kPositionsRoom;
  }
  // Whether more than a share of the scores is above zero.
  bool has_more_than(float share) const {
    return static_cast<float>(total) > share * static_cast<float>(rows * columns);
  }

  void start(int new_rows, int new_columns) {
    rows = new_rows;
    columns = new_columns;
    total = 0;
    has_lists = false;
  }

  void leave_empty(int i) {
    bits[i] = KeyBits{};
    lengths[i] = 0;
  }

  // Rectify scores that are in row i already.
  void rectify_row(int i, int known) {
    bits[i] = KeyBits{};
    for (int j = 0; j < known; j += kWidth) {
      const Vector x[1] = {Vector::load(score_row(i) + j)};
      rectify(i).from(j)(0, x);
    }
  }

  // Once the scores of row i are rectified: up to a column they are known, and those that are not seen
  // are still among them.
  void finish_row(int i, int known, bool all_seen) {
    float* row = score_row(i);
    for (int w = 0; w < kWords && !all_seen; w++) {
      bits[i].words[w] &= seen[i].words[w];
      for (int j = 64 * w; j < 64 * (w + 1) && j < known; j += kWidth) {
        const auto part = static_cast<std::uint32_t>(bits[i].words[w] >> (j % 64));
        Vector::load(row + j).where(part).store(row + j);
      }
    }
    for (int j = static_cast<int>(round_up(known, kWidth)); j < columns; j += kWidth) {
      Vector::all(0.0f).store(row + j);
    }
    total += bits[i].count();
  }

  // Rectifies the scores of some rows as they come.
  struct Rectify {
    float* scores;
    KeyBits* bits;
    int first;

    Rectify from(int column) const { return {scores + column, bits, column}; }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      std::uint64_t word = 0;
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        x[c].rectified().store(scores + r * kKeyTile + c * kWidth);
        const std::uint64_t part = x[c].not_below_or_zero();
        if constexpr (C * kWidth == 64) {
          word |= part << (c * kWidth);
        } else {
          const int j = first + c * kWidth;
          bits[r].words[j / 64] |= part << (j % 64);
        }
      }
      if constexpr (C * kWidth == 64) bits[r].words[first / 64] = word;
    }
  };
  Rectify rectify(int i) { return {score_row(i), bits + i, 0}; }

  // The same once a bias is added, for whole vectors of it.
  template <class B>
  struct RectifyBiased {
    Rectify rectify;
    const B* bias;
    std::int64_t stride;

    RectifyBiased from(int column) const { return {rectify.from(column), bias + column, stride}; }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      Vector sum[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sum[c] = x[c] + Vector::load(bias + r * stride + c * kWidth);
      rectify(r, sum);
    }
  };
  template <class B>
  RectifyBiased<B> rectify_biased(int i, const B* bias, std::int64_t stride) {
    return {rectify(i), bias, stride};
  }

  // Takes products for rows of a matrix: 0 where the score is not above zero.
  struct Choose {
    float* out;
    const KeyBits* bits;
    int first;

    Choose from(int column) const { return {out + column, bits, column}; }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        const int j = first + c * kWidth;
        const auto part = static_cast<std::uint32_t>(bits[r].words[j / 64] >> (j % 64));
        x[c].where(part).store(out + r * kKeyTile + c * kWidth);
      }
    }
  };
  Choose choose(int i, float* matrix) const { return {matrix + i * kKeyTile, bits + i, 0}; }

  void list_positions() {
    for (int i = 0; i < rows; i++) lengths[i] = list_bits(bits[i], list(i));
  }

  void list_scores() {
    list_positions();
    for (int i = 0; i < rows; i++) {
      list_numbers(i, score_row(i), weight_row(i));
      pad_numbers(weight_row(i), lengths[i]);
    }
    has_lists = true;
  }

  void finish_list(int i, int length) {
    pad_list(list(i), length);
    pad_numbers(weight_row(i), length);
    lengths[i] = length;
  }

  // Of one number per key of row i, those of the keys that are listed.
  void list_numbers(int i, const float* numbers, float* listed) const {
    for (int j = 0; j < columns; j += kWidth) {
      const auto part = static_cast<std::uint32_t>(bits[i].words[j / 64] >> (j % 64)) & kVectorBits;
      Vector::load(numbers + j).store_chosen(part, listed);
      listed += count_bits(part);
    }
  }

  // A matrix of the listed numbers; 0 elsewhere.
  void unlist(const float* numbers, float* matrix) {
    set_to_zero(matrix, sizeof(float) * static_cast<std::size_t>(rows) * kKeyTile);
    for (int i = 0; i < rows; i++) {
      const std::uint8_t* row_list = list(i);
      const float* row_numbers = numbers + i * kNumbersRoom;
      for (int t = 0; t < lengths[i]; t++) matrix[i * kKeyTile + row_list[t]] = row_numbers[t];
    }
  }
};

// Scores of a block of queries with one tile of keys after the other.
template <class T>
class Scorer {
 public:
  // What fill is to find besides the scores. Lists are exact, or hold some zeros as well: whoever just
  // sums up along them need not wait for those to be taken out.
  struct Wishes {
    bool screening, exact_lists, bits;
  };

  Scorer(const Problem& p, std::int64_t batch, std::int64_t head_index, std::int64_t begin,
         std::int64_t end, Wishes wishes, Ahead& ahead)
      : head(p, batch, head_index),
        p_(p),
        ahead_(ahead),
        batch_(batch),
        begin_(begin),
        count_(end - begin),
        packed_(count_ * dim_),
        wishes_(wishes),
        may_screen_(Screen::kIsAvailable && wishes.screening && !head.has_bias() &&
                    least(p.queries, p.keys) >= kLeastToScreen),
        screen_(may_screen_ ? count_ : 0, may_screen_ ? dim_ : 0) {
    pack_rows(row_of<T>(p.query, batch, head_index, begin), p.query.row, static_cast<int>(count_),
              p.dim, dim_, p.scale, packed_);
  }

  const Head head;

  // Queries times the scale, from one of the block on.
  Rows queries(std::int64_t i) { return {packed_ + i * dim_, dim_}; }
  Rows keys() const { return keys_; }

  void take_keys(std::int64_t key, int columns) {
    key_ = key;
    columns_ = columns;
    keys_ = packed_rows(row_of<T>(p_.key, batch_, head.key_head(), key), p_.key.row, columns,
                        p_.dim, keys_buffer_);
    has_keys_t_ = has_screen_ = false;
    can_screen_ = may_screen_;
  }

  // Have the mask fetched for the tile that follows the one of so many queries.
  void fetch_next_mask(std::int64_t i, int rows) {
    const std::int64_t next = i + rows < count_ ? i + rows : 0;
    const std::int64_t key = next == 0 ? key_ + kKeyTile : key_;
    if (key >= p_.keys) return;
    head.fetch_mask(begin_ + next, least(kQueryTile, count_ - next), key,
                    least(kKeyTile, p_.keys - key), ahead_);
  }

  // Fill the tile of `rows` queries from one of the block on, with lists alone where screening pays,
  // else with all scores. `candidates` is the share of scores that screening let through for these
  // queries in the tile before, kUnknown at first; it is brought up to date. All choices depend on the
  // queries and keys alone, so that results are the same for any division of the work.
  void fill(std::int64_t i, int rows, float& candidates, Tile& tile) {
    tile.start(rows, columns_);
    const Sight sight = head.look(begin_ + i, rows, key_, columns_, tile.seen);
    if (sight == Sight::none) {
      for (int r = 0; r < rows; r++) tile.leave_empty(r);
      tile.has_lists = true;
      return;
    }
    if (can_screen_ && candidates < kMostCandidates && take_keys_to_screen()) {
      if (candidates == kUnknown) candidates = take_queries_to_screen(i, tile);
      if (candidates < kMostCandidates) candidates = find_candidates(i, rows, tile);
      if (candidates < kMostCandidates) {
        check_candidates(i, tile);
        return;
      }
    }
    fill_scores(i, sight, tile);
    const float share = static_cast<float>(tile.total) / static_cast<float>(rows * columns_);
    candidates = share + kFalseCandidates < kMostCandidates ? kUnknown : 1.0f;
  }

  // All scores, also of what nobody sees.
  void fill_all(std::int64_t i, int rows, Tile& tile) {
    tile.start(rows, columns_);
    fill_scores(i, head.look(begin_ + i, rows, key_, columns_, tile.seen), tile);
  }

 private:
  void fill_scores(std::int64_t i, Sight sight, Tile& tile) {
    if (!has_keys_t_) transpose(keys_, dim_, columns_, keys_t_);
    has_keys_t_ = true;
    for (int r = 0; r < tile.rows; r++) tile.bits[r] = KeyBits{};
    for (int r = 0, block = 0; r < tile.rows; r += block) {
      block = next_block<kRows>(tile.rows - r);
      const std::int64_t causal_end = head.causal_end(begin_ + i + r + block - 1);
      const int known = static_cast<int>(between(0, causal_end - key_, columns_));
      const auto score = [&](const auto& take) {
        product_rows<kRows>(queries(i + r), keys_t_, p_.dim, -head.threshold(), block, known, ahead_,
                            take);
      };
      const std::int64_t query = begin_ + i + r;
      if (!head.has_bias()) {
        score(tile.rectify(r));
      } else if (!head.is_bias_contiguous() || known % kWidth != 0) {
        score(Store{tile.score_row(r)});
        for (int u = 0; u < block; u++) {
          head.add_bias(query + u, key_, known, tile.score_row(r + u));
          tile.rectify_row(r + u, known);
        }
      } else if (head.is_bias_bfloat16()) {
        score(tile.rectify_biased(r, head.template bias<std::uint16_t>(query, key_),
                                  head.bias_row_stride()));
      } else {
        score(tile.rectify_biased(r, head.template bias<float>(query, key_), head.bias_row_stride()));
      }
      for (int u = r; u < r + block; u++) tile.finish_row(u, known, sight == Sight::all);
    }
  }

  // The share of scores that screening lets through.
  float find_candidates(std::int64_t i, int rows, Tile& tile) {
    const int found = screen_.find(i, rows, columns_, tile.seen, tile.bits);
    return static_cast<float>(found) / static_cast<float>(rows * columns_);
  }

  // Round queries: the first few, and if these let little through, the rest. Returns their share.
  float take_queries_to_screen(std::int64_t i, Tile& tile) {
    const int few = static_cast<int>(least(Screen::kBlock, tile.rows));
    const float threshold = head.threshold();
    if (!screen_.take_queries(queries(i), i, few, threshold)) return 1.0f;
    const float share = find_candidates(i, few, tile);
    if (share >= kMostCandidates) return share;
    const bool is_finite =
        screen_.take_queries(queries(i + few), i + few, tile.rows - few, threshold);
    return is_finite ? share : 1.0f;
  }

  bool take_keys_to_screen() {
    if (!has_screen_) {
      can_screen_ = screen_.take_keys(keys_, columns_);
      has_screen_ = true;
    }
    return can_screen_;
  }

  // From bits that say which scores may be above the threshold to lists of those that are. In passes,
  // as what one has just written in small pieces the next could not yet read in large ones.
  void check_candidates(std::int64_t i, Tile& tile) {
    tile.has_lists = true;
    if (!wishes_.exact_lists) {
      tile.list_positions();
      for (int r = 0; r < tile.rows; r++) {
        ahead_.fetch(kLinesPerRow);
        score_rows(queries(i + r)[0], keys_, dim_, tile.list(r), tile.lengths[r],
                   -head.threshold(), tile.weight_row(r));
      }
      for (int r = 0; wishes_.bits && r < tile.rows; r++) {
        Screen::keep_bits(tile.weight_row(r), tile.lengths[r], tile.bits[r]);
      }
      return;
    }
    int lengths[kQueryTile];
    for (int r = 0; r < tile.rows; r++) {
      lengths[r] = list_bits(tile.bits[r], candidate_list(r));
    }
    for (int r = 0; r < tile.rows; r++) {
      dot_rows(queries(i + r)[0], keys_, dim_, candidate_list(r), lengths[r], candidate_row(r));
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
  Ahead& ahead_;  // what to fetch on the way
  const std::int64_t batch_, begin_, count_;
  const std::int64_t dim_ = round_up(p_.dim, kWidth);
  Buffer packed_, keys_buffer_{kKeyTile * dim_}, keys_t_{dim_ * kKeyTile};
  Rows keys_{nullptr, 0};
  std::int64_t key_ = 0;
  int columns_ = 0;
  const Wishes wishes_;
  bool has_keys_t_ = false, has_screen_ = false, may_screen_, can_screen_ = false;
  Screen screen_;
  Buffer candidates_{may_screen_ && wishes_.exact_lists ? kQueryTile * Tile::kNumbersRoom : 0};
  Buffer candidate_lists_{
      may_screen_ && wishes_.exact_lists ? kQueryTile * Tile::kPositionsRoom / 4 : 0};
};

}  // namespace
}  // namespace relakit::RELAKIT_ISA
