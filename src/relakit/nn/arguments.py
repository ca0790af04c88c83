"""Checks of the arguments that make a module: sizes, numbers, switches, device and dtype."""

from numbers import Real

import torch


def check_size(name: str, size: object) -> None:
    """Raise unless it is a whole number of at least 1."""
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        is_whole = isinstance(size, float) and size.is_integer()
        hint = f"; write {size:.0f}" if is_whole else ""
        raise TypeError(f"{name} must be a whole number (int), got {size!r}{hint}")
    if size < 1:  # type: ignore[operator]  # NumPy's whole numbers have no common type with int
        raise ValueError(f"{name} must be at least 1, got {size}")


def check_number(name: str, number: object, hint: str = "") -> None:
    """Raise unless it is a number, with a hint that the message ends with."""
    if not isinstance(number, Real):
        raise TypeError(f"{name} must be a number, got {number!r}{hint}")


def check_switch(name: str, value: object, hint: str = "") -> None:
    """Raise unless it is True or False; 1 and 0 are, too."""
    if isinstance(value, torch.Tensor):
        raise TypeError(
            f"{name} must be True or False, got a tensor of shape {tuple(value.shape)}{hint}"
        )
    if value not in (True, False):
        raise TypeError(f"{name} must be True or False, got {value!r}{hint}")


def check_device_and_dtype(device: object, dtype: object) -> None:
    """Raise unless torch knows the device, and parameters can have the dtype."""
    if isinstance(device, str):
        try:
            torch.device(device)
        except RuntimeError:
            raise ValueError(
                f"unknown device {device!r}; choose for example 'cpu', 'cuda' or 'cuda:1'"
            ) from None
    if dtype is None:
        return
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be a torch.dtype such as torch.float32, got {dtype!r}")
    if not dtype.is_floating_point:
        raise ValueError(
            "dtype must be floating point (torch.float16, torch.bfloat16, torch.float32 or "
            f"torch.float64), got {dtype}"
        )
