// PrefetchQueue: fetches memory that is needed soon during other work. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/prefetch.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// A queue of rows to fetch, a few lines of memory with each step of other work. Requested all at
// once, they would arrive no sooner, and the processor would stall.
class PrefetchQueue {
 public:
  // Queue rows of `bytes` bytes.
  void add(const void* start, std::int64_t bytes, std::int64_t stride, std::int64_t rows) {
    if (current_ == count_) current_ = count_ = 0;
    if (count_ == kMost || rows <= 0 || bytes <= 0) return;
    const auto* first = static_cast<const char*>(start);
    const std::int64_t lines = (bytes + kLine - 1) / kLine;
    ranges_[count_++] = bytes == stride ? Range{first, kLine, 1, (rows * bytes + kLine - 1) / kLine}
                                        : Range{first, stride, lines, rows};
  }

  // Queue rows of `size` numbers.
  template <class T>
  void add_rows(const T* rows, std::int64_t size, std::int64_t stride, std::int64_t count) {
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
    add(rows, size * bytes, stride * bytes, count);
  }

  // As many lines of memory as requested. Fetching beyond the rows does no harm.
  struct Lines {
    const char* first;
    std::int64_t stride;

    void fetch(std::int64_t i) const { prefetch(first + i * stride); }
  };

  Lines next(std::int64_t count) {
    if (current_ == count_) return {reinterpret_cast<const char*>(this), 0};
    const Range& range = ranges_[current_];
    const Lines lines{range.first + line_ * kLine + row_ * range.stride, range.stride};
    row_ += count;
    if (row_ >= range.rows) {
      row_ = 0;
      line_++;
      if (line_ == range.lines) {
        line_ = 0;
        current_++;
      }
    }
    return lines;
  }

  void fetch(int count) {
    if (current_ == count_) return;
    const Lines lines = next(count);
    for (int i = 0; i < count; i++) lines.fetch(i);
  }

 private:
  static constexpr int kMost = 8, kLine = 64;

  struct Range {
    const char* first;
    std::int64_t stride, lines, rows;
  };
  Range ranges_[kMost];
  int count_ = 0, current_ = 0;
  std::int64_t line_ = 0, row_ = 0;
};

// How many lines to fetch while working on one row.
constexpr int kLinesPerRow = 4;
// A larger head takes longer to compute than to read, and needs no prefetching.
constexpr std::int64_t kMostBytesAhead = 512 * 1024;

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
