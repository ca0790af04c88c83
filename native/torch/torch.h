#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "torch/dlpack.h"

// Torch as seen through Python's C interface and DLPack, without its headers: one build serves every
// version that has DLPack's exchange interface.

namespace relakit {

// Answers relakit.ops.native.eager.is_plain_eager, and reads and makes tensors where it is true.
// Python's lock must be held.
class Torch {
 public:
  // `parts` are those of relakit.ops.native.direct.connection_parts; KeyError without one of them.
  explicit Torch(const nanobind::dict& parts);

  // Whether DLPack's interface is one that this build knows.
  bool can_read() const { return view_of_object_ != nullptr; }

  // Whether nothing watches or transforms operations.
  bool is_plain() const;

  // A tensor of ordinary type and dispatch keys, on a CPU; nothing for any other object.
  std::optional<dlpack::Tensor> read(nanobind::handle object) const;
  // The same without a look at type and dispatch keys, for a tensor that torch has just made here.
  std::optional<dlpack::Tensor> view(nanobind::handle tensor) const;

  bool is_grad_enabled() const { return is_true(is_grad_enabled_); }
  bool is_autocast_enabled() const { return is_true(is_autocast_enabled_); }  // on any device
  int threads() const;
  static bool requires_grad(nanobind::handle tensor);

  nanobind::object empty_like(nanobind::handle tensor) const;
  nanobind::object contiguous_empty_like(nanobind::handle tensor) const;
  // Uninitialised int64.
  nanobind::object empty_words(nanobind::handle like, const std::int64_t (&shape)[4]) const;

 private:
  static bool is_true(const nanobind::object& function);

  nanobind::object tensor_type_, parameter_type_;
  std::vector<nanobind::object> counters_;  // functions that give 0 where nothing is at work
  std::vector<nanobind::object> states_;    // and those that give None
  nanobind::dict forward_ad_;               // variables of torch.autograd.forward_ad
  nanobind::object dispatch_keys_, number_of_keys_;
  std::vector<std::uint64_t> ordinary_keys_;
  nanobind::object is_grad_enabled_, is_autocast_enabled_, get_num_threads_;
  nanobind::object empty_like_, contiguous_format_, int64_;
  decltype(dlpack::Exchange::view_of_object) view_of_object_ = nullptr;
};

}  // namespace relakit
