"""timm, also where torchvision is missing or made for another build of torch.

timm imports torchvision for image transforms and detection, of which its vision transformers use
nothing. So any class of that name will do.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

import pytest
from torch import nn


class _Anything(type):
    """Classes whose constants are their names, such as those of an enumeration."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class _StandIn(ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (nn.Module,), {})


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.partition(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def timm_or_skip() -> Any:
    """The module timm; skips the calling test file where it is not installed."""
    try:
        return importlib.import_module("timm")
    except (ImportError, RuntimeError) as error:
        if getattr(error, "name", None) == "timm":
            pytest.skip("timm is not installed (pip install timm)", allow_module_level=True)
    for name in [n for n in sys.modules if n.partition(".")[0] in ("timm", "torchvision")]:
        del sys.modules[name]
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module("timm")
    except ImportError as error:
        pytest.skip(f"timm cannot be imported: {error}", allow_module_level=True)
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
