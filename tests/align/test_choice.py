"""Where links are read, on disk."""

import re
from pathlib import Path

import pytest

from relakit.align.choice import AlignmentChoice, ChosenOn, read_choice, write_choice
from relakit.model import ModelConfig

CONFIG = ModelConfig(vocabulary=50, dim=8, heads=2, encoder_layers=1, decoder_layers=3)


def make(**changes: object) -> AlignmentChoice:
    values = {"layer": 2, "heads": (0, 1), "reading": "shifted", "chosen": ChosenOn(by="given")}
    return AlignmentChoice.model_validate({**values, **changes})


def test_round_trip(tmp_path: Path) -> None:
    assert read_choice(tmp_path, CONFIG) is None
    choice = make(chosen=ChosenOn(by="aer", files=("a", "b"), pairs=7, value=0.25))
    assert write_choice(tmp_path, choice).name == "alignment.json"
    assert read_choice(tmp_path, CONFIG) == choice


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON file"),
        ('{"layer": 1}', "heads is missing"),
        (make().model_dump_json().replace("shifted", "twice"), "reading = 'twice': must be"),
        (make().model_dump_json().replace("[0,1]", "[1,1]"), "heads must be different"),
        (make(layer=3).model_dump_json(), "there is no layer 4; the decoder has 3 of them"),
        (make(heads=(2,)).model_dump_json(), "there is no head 3; each layer has 2 of them"),
    ],
)
def test_damaged(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "alignment.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read_choice(tmp_path, CONFIG)
    assert str(tmp_path / "alignment.json") in str(error.value)


def test_in_words() -> None:
    assert make().in_words() == "layer 3, heads 1, 2, shifted, end ignored"
    alone = make(heads=(1,), end="competes").in_words()
    assert alone == "layer 3, head 2, shifted, end competes"
