"""The results' best reading, their JSON, and which sentences are kept."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from relakit.analysis import (
    AlignmentResult,
    AlignmentScore,
    AlignmentSettings,
    AttentionScores,
    ModelAnalysis,
    analyze_model,
    generated_gold_pair,
)
from relakit.analysis.results import layer_means, mean_of, spread
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer
from relakit.model import Transformer

ModelMaker = Callable[[str], Transformer]


def score(right: int) -> AlignmentScore:
    """Ten links, ten of them sure, so many of them right: an error rate of 1 - right / 10."""
    return AlignmentScore(10, 10, right, right)


ALIGNMENT = AlignmentResult(
    settings=AlignmentSettings(end="competes"),
    attention="rela-g",
    pairs=3,
    normal=AttentionScores(
        heads=((score(1), score(4)), (score(7), score(7)), (score(6), score(0))),
        layers=(score(2), score(3), score(8)),
    ),
    shifted=AttentionScores(
        heads=((score(1), score(9)), (AlignmentScore(0, 10, 0, 0),) * 2, (score(0), score(1))),
        layers=(score(2), score(2), score(2)),
    ),
)


def test_mean_of_known_values() -> None:
    assert mean_of(((0.5, None), (1.0, 0.0))) == 0.5
    assert mean_of([(None, 0.25)]) == 0.25
    assert mean_of(((None,), ())) is None


def test_best_reading() -> None:
    assert ALIGNMENT.best_reading == "shifted"
    assert ALIGNMENT.best_score("shifted") == score(9)
    assert ALIGNMENT.best_score("normal") == score(7)
    with pytest.raises(ValueError, match="unknown reading 'late'"):
        ALIGNMENT.scores("late")


@pytest.fixture(scope="module")
def analysis(make_model: ModelMaker, tokenizer: Tokenizer) -> ModelAnalysis:
    """Computed, but for the alignment."""
    pairs = [generated_gold_pair(pair) for pair in generate_pairs(9, split="test")]
    found, _ = analyze_model(make_model("rela-g"), tokenizer, pairs, name="m")
    return found.model_copy(update={"alignment": ALIGNMENT})


def test_json_there_and_back(analysis: ModelAnalysis, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    analysis.write(path)
    assert ModelAnalysis.read(path) == analysis
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    document = json.loads(path.read_text(encoding="utf-8"))["alignment"]
    assert document["settings"] == {"end": "competes"}
    counts = {"found": 10, "sure": 10, "found_sure": 4, "found_possible": 4}
    assert document["normal"]["heads"][0][1] == counts


def test_files_of_earlier_versions(analysis: ModelAnalysis, tmp_path: Path) -> None:
    """They say nothing of the outputs before the norm."""
    document = json.loads(analysis.model_dump_json())
    for kind in document["kinds"]:
        del kind["output_rms"], kind["closed_gates"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    found = ModelAnalysis.read(path)
    assert found.kind("cross").output_rms is None
    assert found.kind("cross").closed_gates is None
    assert found.kind("cross").sparsity == analysis.kind("cross").sparsity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format = 'other': must be 'relakit analysis'"),
        ({"version": 2}, "version = 2: must be 1"),
        ({"alignment": {"normal": None}}, "alignment.normal = None: must have keys and values"),
        (
            {"alignment": {"normal": {"heads": [], "layers": []}}},
            r"alignment\.normal: [^V].*got 0 layers, and heads of 0",
        ),
        (
            {"alignment": {"normal": {"heads": [[{"found": 1}]], "layers": []}}},
            r"alignment\.normal\.heads\.0\.0\.sure is missing",
        ),
        ({"alignment": {"settings": {"end": "x"}}}, r"alignment\.settings\.end = 'x': must be "),
    ],
)
def test_damaged_files(
    analysis: ModelAnalysis, change: dict[str, object], message: str, tmp_path: Path
) -> None:
    document = json.loads(analysis.model_dump_json())
    alignment = change.get("alignment")
    if isinstance(alignment, dict):
        change = {"alignment": {**document["alignment"], **alignment}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**document, **change}))
    with pytest.raises(ValueError, match=message) as caught:
        ModelAnalysis.read(path)
    assert str(caught.value).startswith(f"{path} is not an analysis: ")


def test_files_of_something_else(analysis: ModelAnalysis, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"format": "relakit analysis"}')
    with pytest.raises(ValueError, match=r"a\.json is not an analysis: name is missing"):
        ModelAnalysis.read(path)
    path.write_text(analysis.model_dump_json()[:100])
    with pytest.raises(ValueError, match=r"a\.json is not an analysis: it is no JSON, or is trunc"):
        ModelAnalysis.read(path)


@pytest.mark.parametrize(
    ("count", "total", "expected"),
    [(0, 5, []), (5, 3, [0, 1, 2]), (1, 5, [2]), (2, 8, [2, 6]), (3, 3, [0, 1, 2])],
)
def test_places_are_spread_evenly(count: int, total: int, expected: list[int]) -> None:
    assert spread(count, total) == expected


def test_heads_without_a_value_are_left_out_of_a_layer() -> None:
    assert layer_means([(0.2, None), (None, None), (0.2, 0.4)]) == [0.2, None, pytest.approx(0.3)]
