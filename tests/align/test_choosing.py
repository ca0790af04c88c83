"""Models in memory, to choose heads of."""

from pathlib import Path

import pytest
from model_folders import write_model

from relakit.align.choosing import LoadedModel


def test_an_unknown_device(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    with pytest.raises(ValueError, match="unknown device 'bogus'; choose cpu or cuda"):
        LoadedModel.load(tmp_path / "model", "bogus")
