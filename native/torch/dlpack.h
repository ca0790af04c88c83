#pragma once

#include <cstdint>
#include <initializer_list>

// The part of the DLPack standard, major version 1, that is needed to read a tensor. With it we
// need neither DLPack's header nor torch's. The names are ours; the layout is the standard's.

namespace relakit::dlpack {

constexpr std::uint32_t kMajorVersion = 1;
constexpr std::int32_t kCpu = 1;
constexpr std::uint8_t kInt = 0, kFloat = 2, kBfloat = 4, kBool = 6;

struct Version {
  std::uint32_t major, minor;
};

struct Device {
  std::int32_t type, index;
};

struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t dims;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

// What the capsule `__dlpack_c_exchange_api__` of a tensor's class points to.
struct Exchange {
  struct Header {
    Version version;
    const Header* previous;  // the same for an older major version, or null
  } header;
  void (*allocate)();
  void (*managed_from_object)();
  void (*managed_to_object)();
  // Fills in a view of a Python object, which must outlive the view. Returns 0, or -1 with Python's
  // error set. May be null.
  int (*view_of_object)(void* object, Tensor* view);
  void (*current_stream)();
};

inline bool has_dtype(const Tensor& tensor, std::uint8_t code, int bits) {
  return tensor.dtype.code == code && tensor.dtype.bits == bits;
}
inline bool is_float32(const Tensor& tensor) { return has_dtype(tensor, kFloat, 32); }
inline bool is_bfloat16(const Tensor& tensor) { return has_dtype(tensor, kBfloat, 16); }

inline bool has_shape(const Tensor& tensor, std::initializer_list<std::int64_t> shape) {
  if (tensor.dims != static_cast<std::int32_t>(shape.size())) return false;
  const std::int64_t* size = tensor.shape;
  for (const std::int64_t expected : shape) {
    if (*size++ != expected) return false;
  }
  return true;
}

inline bool is_contiguous(const Tensor& tensor) {
  for (int i = 0; i < tensor.dims; i++) {
    if (tensor.shape[i] == 0) return true;  // whatever its strides are
  }
  std::int64_t stride = 1;
  for (int i = tensor.dims - 1; i >= 0; i--) {
    if (tensor.strides[i] != stride && tensor.shape[i] != 1) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

}  // namespace relakit::dlpack
