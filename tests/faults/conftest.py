"""The folder of `fault_folder`, built once, and a fresh copy of it for every row."""

import shutil
from pathlib import Path

import pytest
from fault_folder import build


@pytest.fixture(scope="session")
def whole_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("faults") / "whole")


@pytest.fixture
def folder(whole_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole_folder, tmp_path / "here"))
