#include "torch/torch.h"

#include <algorithm>
#include <stdexcept>

namespace nb = nanobind;

namespace relakit {

namespace {

// Names that every call looks up: interned, so that Python compares them by address, and created
// once. Never freed: by the time a library is unloaded, Python is gone.
PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }

struct Names {
  PyObject* level = name("_current_level");
  PyObject* requires_grad = name("requires_grad");
  PyObject* for_dtype = Py_BuildValue("(s)", "dtype");
  PyObject* for_memory_format = Py_BuildValue("(s)", "memory_format");
};

const Names& names() {
  static const Names all;
  return all;
}

std::vector<nb::object> items(const nb::handle& sequence) {
  std::vector<nb::object> all;
  for (nb::handle item : sequence) all.push_back(nb::borrow(item));
  return all;
}

// The function that reads tensors; null if there is none for a version that we know.
decltype(dlpack::Exchange::view_of_object) find_reader(const nb::object& capsule) {
  constexpr const char* kName = "dlpack_exchange_api";
  if (!PyCapsule_IsValid(capsule.ptr(), kName)) return nullptr;
  auto* header =
      static_cast<const dlpack::Exchange::Header*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  while (header != nullptr && header->version.major != dlpack::kMajorVersion) {
    header = header->version.major > dlpack::kMajorVersion ? header->previous : nullptr;
  }
  if (header == nullptr) return nullptr;
  return reinterpret_cast<const dlpack::Exchange*>(header)->view_of_object;
}

}  // namespace

Torch::Torch(const nb::dict& parts)
    : tensor_type_(parts["tensor_type"]),
      parameter_type_(parts["parameter_type"]),
      counters_(items(parts["counters"])),
      states_(items(parts["states"])),
      forward_ad_(nb::cast<nb::dict>(parts["forward_ad"])),
      dispatch_keys_(parts["dispatch_keys"]),
      number_of_keys_(parts["number_of_keys"]),
      is_grad_enabled_(parts["is_grad_enabled"]),
      is_autocast_enabled_(parts["is_autocast_enabled"]),
      get_num_threads_(parts["get_num_threads"]),
      empty_like_(parts["empty_like"]),
      new_empty_(parts["new_empty"]),
      new_zeros_(parts["new_zeros"]),
      contiguous_format_(parts["contiguous_format"]),
      float32_(parts["float32"]),
      int32_(parts["int32"]),
      int64_(parts["int64"]),
      draw_seed_(parts["draw_seed"]),
      view_of_object_(find_reader(parts["exchange"])) {
  for (nb::handle key : nb::object(parts["ordinary_keys"])) {
    ordinary_keys_.push_back(nb::cast<std::uint64_t>(key));
  }
}

bool Torch::is_plain() const {
  for (const nb::object& counter : counters_) {
    const nb::object count = checked(PyObject_CallNoArgs(counter.ptr()));
    if (PyObject_IsTrue(count.ptr()) != 0) return false;
  }
  for (const nb::object& state : states_) {
    if (!checked(PyObject_CallNoArgs(state.ptr())).is_none()) return false;
  }
  PyObject* level = PyDict_GetItemWithError(forward_ad_.ptr(), names().level);  // borrowed
  if (level == nullptr || !PyLong_Check(level)) return false;
  return PyLong_AsLong(level) < 0;
}

bool Torch::is_ordinary(nb::handle object) const {
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  if (type != tensor_type_.ptr() && type != parameter_type_.ptr()) return false;
  const nb::object keys = checked(PyObject_CallOneArg(dispatch_keys_.ptr(), object.ptr()));
  const nb::object number = checked(PyObject_CallOneArg(number_of_keys_.ptr(), keys.ptr()));
  const std::uint64_t bits = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();
  return std::find(ordinary_keys_.begin(), ordinary_keys_.end(), bits) != ordinary_keys_.end();
}

std::optional<dlpack::Tensor> Torch::read(nb::handle object) const {
  return is_ordinary(object) ? view(object) : std::nullopt;
}

std::optional<dlpack::Tensor> Torch::view(nb::handle object) const {
  dlpack::Tensor view;
  if (view_of_object_(object.ptr(), &view) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (view.device.type != dlpack::kCpu || view.dtype.lanes != 1 ||
      (view.dims > 0 && view.strides == nullptr)) {
    return std::nullopt;
  }
  const bool has_numbers = std::find(view.shape, view.shape + view.dims, 0) == view.shape + view.dims;
  if (view.data == nullptr && has_numbers) return std::nullopt;  // its memory was released
  view.data = static_cast<char*>(view.data) + view.byte_offset;
  return view;
}

bool Torch::is_true(const nb::object& function) {
  return checked(PyObject_CallNoArgs(function.ptr())).is(nb::handle(Py_True));
}

int Torch::threads() const {
  return nb::cast<int>(checked(PyObject_CallNoArgs(get_num_threads_.ptr())));
}

bool Torch::requires_grad(nb::handle tensor) {
  return checked(PyObject_GetAttr(tensor.ptr(), names().requires_grad)).is(nb::handle(Py_True));
}

nb::object Torch::empty_like(nb::handle tensor) const {
  return checked(PyObject_CallOneArg(empty_like_.ptr(), tensor.ptr()));
}

nb::object Torch::contiguous_empty_like(nb::handle tensor) const {
  PyObject* arguments[] = {tensor.ptr(), contiguous_format_.ptr()};
  return checked(PyObject_Vectorcall(empty_like_.ptr(), arguments, 1, names().for_memory_format));
}

namespace {

template <class Shape>
nb::object tuple_of(const Shape& shape) {
  nb::object sizes = checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  Py_ssize_t i = 0;
  for (const std::int64_t size : shape) {
    PyTuple_SET_ITEM(sizes.ptr(), i++, checked(PyLong_FromLongLong(size)).release().ptr());
  }
  return sizes;
}

}  // namespace

nb::object Torch::empty(nb::handle like, Shape shape, Content content) const {
  return empty(like, tuple_of(shape), content);
}

nb::object Torch::empty(nb::handle like, const std::vector<std::int64_t>& shape,
                        Content content) const {
  return empty(like, tuple_of(shape), content);
}

nb::object Torch::empty(nb::handle like, const nb::object& sizes, Content content) const {
  const nb::object& dtype = content == Content::float32 ? float32_
                            : content == Content::int32 ? int32_
                                                        : int64_;
  PyObject* arguments[] = {like.ptr(), sizes.ptr(), dtype.ptr()};
  return checked(PyObject_Vectorcall(new_empty_.ptr(), arguments, 2,
                                     content == Content::as_given ? nullptr : names().for_dtype));
}

nb::object Torch::zeros(nb::handle like, Shape shape) const {
  const nb::object sizes = tuple_of(shape);
  PyObject* arguments[] = {like.ptr(), sizes.ptr()};
  return checked(PyObject_Vectorcall(new_zeros_.ptr(), arguments, 2, nullptr));
}

std::uint64_t Torch::draw_seed() const {
  const nb::object drawn = checked(PyObject_CallNoArgs(draw_seed_.ptr()));
  const auto number = view(drawn);
  if (!number) throw std::runtime_error("torch drew a seed outside of this machine's memory");
  return *static_cast<const std::uint64_t*>(number->data);
}

}  // namespace relakit
