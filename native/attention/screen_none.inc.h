// Used where products of small integers are not fast: there is no screening. The members are the
// same as in screen.inc.h. Part of kernels.inc.h.

namespace relakit::attention::RELAKIT_ISA {
namespace {

class Screen {
 public:
  static constexpr float kFalseCandidates = 0.0f;
  static constexpr bool kIsAvailable = false;
  static constexpr int kBlock = 1;
  Screen(std::int64_t, std::int64_t) {}
  bool take_queries(Rows, std::int64_t, int, float) { return false; }
  bool take_keys(Rows, int) { return false; }
  int find(std::int64_t, int, int, const KeyBits*, KeyBits*) { return 0; }
  static int keep_positive(const float*, float, const std::uint8_t*, int, float*, std::uint8_t*,
                           KeyBits&) {
    return 0;
  }
  static void keep_bits(const float*, const std::uint8_t*, int, KeyBits&) {}
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
