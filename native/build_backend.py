"""Build backend: scikit-build-core, with a pure-Python package where CMake is missing.

scikit-build-core can retry a build whose compiler failed (`if.failed` in pyproject.toml), but it
gives up when there is no CMake to run at all. That happens with `--no-build-isolation`, and on
platforms for which no CMake wheel exists; the C++ extension is optional there as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from scikit_build_core import build as scikit_build
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from scikit_build_core.errors import CMakeVersionError, NotFoundError

# No prepare_metadata hooks: whether the wheel is pure is known only after the build.
__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

Settings = dict[str, Any]


def build_wheel(
    wheel_directory: str,
    config_settings: Settings | None = None,
    metadata_directory: str | None = None,
) -> str:
    return _with_or_without_cmake(
        lambda settings: scikit_build.build_wheel(wheel_directory, settings, metadata_directory),
        config_settings or {},
    )


def build_editable(
    wheel_directory: str,
    config_settings: Settings | None = None,
    metadata_directory: str | None = None,
) -> str:
    return _with_or_without_cmake(
        lambda settings: scikit_build.build_editable(wheel_directory, settings, metadata_directory),
        config_settings or {},
    )


def _with_or_without_cmake(build: Callable[[Settings], str], settings: Settings) -> str:
    try:
        return build(settings)
    except (NotFoundError, CMakeVersionError) as error:
        print(f"relakit: building without the C++ extension: {error}", file=sys.stderr)
        return build({**settings, "wheel.cmake": "false"})
