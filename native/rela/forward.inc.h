// The output. Part of kernels.inc.h.

#include "parallel.h"

namespace relakit::RELAKIT_ISA {
namespace {

template <class T>
void forward_task(const Problem& p, const ForwardResult& result, std::int64_t batch,
                  std::int64_t head_index, std::int64_t begin, std::int64_t end) {
  const Head head(p, batch, head_index);
  const std::int64_t key_head = head_index / (p.heads / p.key_heads);
  const std::int64_t dim = round_up(p.dim, kWidth), value_dim = round_up(p.value_dim, kWidth);
  const std::int64_t rows = end - begin;
  Buffer queries(rows * dim), output(rows * value_dim, Start::zero);
  Buffer keys(kKeyTile * dim), keys_t(dim * kKeyTile), values(kKeyTile * value_dim);
  Tile tile;
  pack_rows(row_of<T>(p.query, batch, head_index, begin), p.query.row, static_cast<int>(rows),
            p.dim, dim, p.scale, queries);
  const std::int64_t row_index = (batch * p.heads + head_index) * p.queries + begin;

  for (std::int64_t key = 0; key < p.keys; key += kKeyTile) {
    const int columns = static_cast<int>(least(kKeyTile, p.keys - key));
    pack_rows(row_of<T>(p.value, batch, key_head, key), p.value.row, columns, p.value_dim,
              value_dim, 1.0f, values);
    // Values that are not finite make NaN of a zero weight, as in the plain formula.
    const bool is_finite = all_finite(values, columns * value_dim);
    if (head.causal_end(end - 1) <= key && is_finite) continue;
    pack_rows(row_of<T>(p.key, batch, key_head, key), p.key.row, columns, p.dim, dim, 1.0f, keys);
    transpose(keys, dim, columns, keys_t);
    for (std::int64_t q = 0; q < rows; q += kQueryTile) {
      const int tile_rows = static_cast<int>(least(kQueryTile, rows - q));
      if (head.causal_end(begin + q + tile_rows - 1) <= key && is_finite) continue;
      const int total = fill_tile(head, queries + q * dim, dim, keys_t, p.dim, begin + q,
                                  tile_rows, key, columns, tile);
      if (total == 0 && is_finite) continue;
      for (int i = 0; i < tile_rows; i++) {
        float* weights = tile.row(i);
        const std::uint8_t* list = tile.list(i);
        const int length = tile.lengths[i];
        if (p.power == 2) {
          for (int t = 0; t < length; t++) weights[list[t]] *= weights[list[t]];
        }
        if (p.dropout > 0.0f) {
          for (int t = 0; t < length; t++) {
            weights[list[t]] *= head.kept(begin + q + i, key + list[t]);
          }
        }
      }
      if (!is_finite || is_dense(total, tile_rows, columns, kDenseSums)) {
        clear_unlisted(tile, tile_rows, columns, tile.scores);
        add_products(output + q * value_dim, tile_rows, tile.scores, kKeyTile, 1, values,
                     value_dim, columns);
      } else {
        for (int i = 0; i < tile_rows; i++) {
          add_rows(output + (q + i) * value_dim, values, value_dim, tile.list(i), tile.lengths[i],
                   tile.row(i), 1);
        }
      }
    }
  }
  unpack_rows(output.data(), value_dim, rows, p.value_dim, 1.0f,
              static_cast<T*>(result.output) + row_index * p.value_dim);
}

constexpr std::int64_t kMostQueriesPerTask = 1024;

template <class T>
void forward_all(const Problem& p, const ForwardResult& result, int threads) {
  if (p.queries == 0) return;
  // Large blocks of queries pack the keys less often; small ones keep all threads busy. A row's
  // result does not depend on its block.
  const std::int64_t heads = p.batch * p.heads;
  const std::int64_t fair = round_up((p.queries * heads + 4 * threads - 1) / (4 * threads), kQueryTile);
  const std::int64_t size = between(kQueryTile, fair, kMostQueriesPerTask);
  const std::int64_t blocks = (p.queries + size - 1) / size;
  struct Work {
    const Problem& p;
    const ForwardResult& result;
    std::int64_t size, blocks;
  } work{p, result, size, blocks};
  run_parallel(
      heads * blocks, threads,
      [](void* data, std::int64_t task) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t begin = task % w.blocks * w.size, pair = task / w.blocks;
        forward_task<T>(w.p, w.result, pair / w.p.heads, pair % w.p.heads, begin,
                        least(begin + w.size, w.p.queries));
      },
      &work);
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
