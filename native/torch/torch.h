#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "torch/dlpack.h"

// Access to torch through Python's C interface and DLPack, without torch's headers: one build works
// with every version that has DLPack's exchange interface.

namespace relakit {

// Takes ownership of what a function of Python's C interface returned; throws if that is an error.
inline nanobind::object checked(PyObject* result) {
  if (result == nullptr) nanobind::raise_python_error();
  return nanobind::steal(result);
}

// Reads and creates tensors, and tells whether torch only runs operations. The GIL must be held.
class Torch {
 public:
  // `parts` come from relakit.ops.native.connection; KeyError if one is missing.
  explicit Torch(const nanobind::dict& parts);

  // Whether this build knows torch's version of DLPack's interface.
  bool can_read() const { return view_of_object_ != nullptr; }

  // Whether torch only runs operations: nothing watches or transforms them.
  bool is_plain() const;
  // Whether the object is a tensor with nothing special about its type and dispatch keys.
  bool is_ordinary(nanobind::handle object) const;

  // A view of a tensor's content; nothing if the tensor is on another device.
  std::optional<dlpack::Tensor> view(nanobind::handle tensor) const;
  // The same for any object; nothing if it is not an ordinary tensor.
  std::optional<dlpack::Tensor> read(nanobind::handle object) const;

  bool is_grad_enabled() const { return is_true(is_grad_enabled_); }
  bool is_autocast_enabled() const { return is_true(is_autocast_enabled_); }  // on any device
  int threads() const;
  static bool requires_grad(nanobind::handle tensor);

  nanobind::object empty_like(nanobind::handle tensor) const;
  nanobind::object contiguous_empty_like(nanobind::handle tensor) const;

  enum class Content { float32, int32, int64, as_given };
  using Shape = std::initializer_list<std::int64_t>;
  // An uninitialised tensor, with the dtype of `like` or another dtype.
  nanobind::object empty(nanobind::handle like, Shape shape, Content content) const;
  nanobind::object empty(nanobind::handle like, const std::vector<std::int64_t>& shape,
                         Content content) const;
  nanobind::object zeros(nanobind::handle like, Shape shape) const;

  // A 62-bit random number from torch's generator, so that torch.manual_seed reproduces it.
  std::uint64_t draw_seed() const;

 private:
  nanobind::object empty(nanobind::handle like, const nanobind::object& shape, Content content) const;
  static bool is_true(const nanobind::object& function);

  nanobind::object tensor_type_, parameter_type_;
  std::vector<nanobind::object> counters_;  // functions that return 0 if torch only runs operations
  std::vector<nanobind::object> states_;    // functions that return None in that case
  nanobind::dict forward_ad_;               // the variables of torch.autograd.forward_ad
  nanobind::object dispatch_keys_, number_of_keys_;
  std::vector<std::uint64_t> ordinary_keys_;
  nanobind::object is_grad_enabled_, is_autocast_enabled_, get_num_threads_;
  nanobind::object empty_like_, new_empty_, new_zeros_;
  nanobind::object contiguous_format_, float32_, int32_, int64_, draw_seed_;
  decltype(dlpack::Exchange::view_of_object) view_of_object_ = nullptr;
};

}  // namespace relakit
