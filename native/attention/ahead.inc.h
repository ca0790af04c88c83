// Memory that is needed soon, fetched while other work is done. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/prefetch.h"

namespace relakit::RELAKIT_ISA {
namespace {

// A queue of rows to fetch. Work that takes time asks for a few lines of memory at each of its steps:
// asked for all at once, they would come no sooner, and the processor would wait for them.
class Ahead {
 public:
  // Rows of so many bytes.
  void add(const void* start, std::int64_t bytes, std::int64_t stride, std::int64_t rows) {
    if (current_ == count_) current_ = count_ = 0;
    if (count_ == kMost || rows <= 0 || bytes <= 0) return;
    const auto* first = static_cast<const char*>(start);
    const std::int64_t lines = (bytes + kLine - 1) / kLine;
    ranges_[count_++] = bytes == stride ? Range{first, kLine, 1, (rows * bytes + kLine - 1) / kLine}
                                        : Range{first, stride, lines, rows};
  }

  // Rows of so many numbers.
  template <class T>
  void add_rows(const T* rows, std::int64_t size, std::int64_t stride, std::int64_t count) {
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
    add(rows, size * bytes, stride * bytes, count);
  }

  // Lines of memory, as many as were asked for; those beyond the rows do no harm.
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

// Lines that a step of work over one row fetches.
constexpr int kLinesPerRow = 4;
// A head that takes longer to work on than to be read needs none of this.
constexpr std::int64_t kMostBytesAhead = 512 * 1024;

}  // namespace
}  // namespace relakit::RELAKIT_ISA
