"""Checks of a module's constructor arguments: sizes, numbers, switches, device, dtype."""

from numbers import Real

import torch


def check_size(name: str, size: object) -> None:
    """Raise unless ``size`` is a whole number of at least 1."""
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        is_whole = isinstance(size, float) and size.is_integer()
        hint = f"; write {size:.0f}" if is_whole else ""
        raise TypeError(f"{name} must be a whole number (int), got {size!r}{hint}")
    if size < 1:  # type: ignore[operator]  # NumPy's whole numbers have no common type with int
        raise ValueError(f"{name} must be at least 1, got {size}")


def check_number(name: str, number: object, hint: str = "") -> None:
    """Raise unless ``number`` is a number; the message ends with the hint."""
    if not isinstance(number, Real):
        raise TypeError(f"{name} must be a number, got {number!r}{hint}")


def check_switch(name: str, value: object, hint: str = "") -> None:
    """Raise unless ``value`` is True or False; 1 and 0 are accepted too."""
    if isinstance(value, torch.Tensor):
        raise TypeError(
            f"{name} must be True or False, got a tensor of shape {tuple(value.shape)}{hint}"
        )
    if value not in (True, False):
        raise TypeError(f"{name} must be True or False, got {value!r}{hint}")


def check_usable(device: torch.device | str | None) -> None:
    """Raise ValueError unless tensors can be created on the device; None is the default device."""
    if device is None:
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ValueError(
            f"device {str(device)!r} cannot be used: {_why_unusable(device, error)}; choose "
            "another, such as 'cpu'"
        ) from None


def _why_unusable(device: torch.device | str, error: Exception) -> str:
    reason = str(error).splitlines()[0]
    kind = str(device).partition(":")[0].upper()
    if "device type at start of device string" in reason or not kind:  # torch lists 20 kinds
        return "there is no such kind"
    if "not compiled with" in reason or isinstance(error, (NotImplementedError, ImportError)):
        return f"this PyTorch was built without {kind}"
    return reason


def check_dtype(dtype: object) -> None:
    """Raise unless parameters can have the dtype; None is the default dtype."""
    if dtype is None:
        return
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be a torch.dtype such as torch.float32, got {dtype!r}")
    if not dtype.is_floating_point:
        raise ValueError(
            "dtype must be floating point (torch.float16, torch.bfloat16, torch.float32 or "
            f"torch.float64), got {dtype}"
        )
