// Where gradients are summed up. Part of kernels.inc.h.

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Rows of a gradient while they are summed up: in the result itself if its rows are packed,
// otherwise in scratch memory.
template <class T>
class GradientSums {
 public:
  GradientSums(T* result, std::int64_t stride, std::int64_t count, std::int64_t size)
      : result_(result),
        stride_(stride),
        count_(count),
        size_(size),
        padded_(round_up(size, kWidth)),
        in_place_(is_packed<T>(stride, size)),
        buffer_(in_place_ ? 0 : count_ * padded_) {
    set_to_zero(rows(), sizeof(float) * static_cast<std::size_t>(count_ * padded_));
  }

  float* rows() { return in_place_ ? reinterpret_cast<float*>(result_) : buffer_.data(); }

  void write(float factor) {
    if (!in_place_) {
      unpack_rows(rows(), padded_, count_, size_, factor, result_, stride_);
    } else if (factor != 1.0f) {
      const Vector f = Vector::all(factor);
      for (std::int64_t i = 0; i < count_ * padded_; i += kWidth) {
        (Vector::load(rows() + i) * f).store(rows() + i);
      }
    }
  }

 private:
  T* result_;
  std::int64_t stride_, count_, size_, padded_;
  bool in_place_;
  Buffer buffer_;
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
