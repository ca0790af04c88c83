"""`relakit.opusfilter`, with OpusFilter where it is installed, and with a stand-in elsewhere."""

import importlib
import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import fake_opusfilter
import numpy as np
import pytest
from calibration_samples import ORIGIN, sample
from model_folders import write_model
from pair_texts import write_pairs

from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.clean.calibrating import fit_calibration
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.columns import COLUMNS
from relakit.clean.score import ScoreModels, ScoreSettings
from relakit.clean.scorer import PairScorer
from relakit.data.generated import generate_pairs
from relakit.data.languages import LanguagePair
from relakit.data.parallel_files import NumberedPair
from relakit.shards.ledger import flat_facts

IS_INSTALLED = importlib.util.find_spec("opusfilter") is not None
needs_opusfilter = pytest.mark.skipif(
    not IS_INSTALLED, reason="the extra relakit[opusfilter] is not installed"
)
PAIRS = [(pair.source_text, pair.target_text) for pair in generate_pairs(30, split="test")]
WITH_BLANKS = [PAIRS[0], ("", "Ein Hund."), *PAIRS[1:], ("A dog.", " "), ("", "")]
IS_BLANK = [not (source.strip() and target.strip()) for source, target in WITH_BLANKS]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The plugin; it is loaded anew, so that others do not get one with a stand-in."""
    if not IS_INSTALLED:
        monkeypatch.setitem(sys.modules, "opusfilter", fake_opusfilter)
    monkeypatch.delitem(sys.modules, "relakit.opusfilter", raising=False)
    yield importlib.import_module("relakit.opusfilter")
    sys.modules.pop("relakit.opusfilter", None)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_model(tmp_path_factory.mktemp("forward") / "model")
    on = ChosenOn(by="given")
    write_choice(folder, AlignmentChoice(layer=0, heads=(1,), reading="normal", chosen=on))
    LanguagePair.learn(*zip(*PAIRS, strict=True)).save(folder / "languages.json")
    return folder


@pytest.fixture(scope="session")
def back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backward") / "model"
    return write_model(folder, seed=1, source="de", target="en")


@pytest.fixture(scope="session")
def calibration(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this model, fitted on scores that are made up."""
    facts = ScoreModels(ScoreSettings(model=model)).facts
    origin = replace(ORIGIN, scored_with=flat_facts(facts))
    path = tmp_path_factory.mktemp("calibration") / "calibration.json"
    fit_calibration(*sample(), origin, expected_noise=0.5).calibration.write(path)
    return path


Make = Callable[..., Any]


@pytest.fixture
def make(module: ModuleType, model: Path) -> Make:
    def make(**parameters: Any) -> Any:
        return module.NullAttentionFilter(**{"model": str(model), **parameters})

    return make


def middle(scores: list[float]) -> float:
    return sorted(scores)[len(scores) // 2]


class TestScores:
    def test_they_are_those_of_relakit_score(self, make: Make, model: Path) -> None:
        numbered = [NumberedPair(n, *pair) for n, pair in enumerate(WITH_BLANKS, start=1)]
        expected = PairScorer.load(model).score(numbered)
        found = list(make().score(WITH_BLANKS))
        assert found == [
            100.0 if one.features is None else one.features.cross_entropy for one in expected
        ]
        assert 0 < min(found) < max(found)

    def test_the_end_of_a_cropped_pair_is_not_known(self, make: Make) -> None:
        scores = list(make(by="end_loss", max_tokens=3).score(PAIRS[:2]))
        assert scores == [100.0, 100.0], "as bad as can be"

    @pytest.mark.parametrize("by", ["attention_mass", "cross_entropy", "target_language"])
    def test_blank_sides_have_the_worst_score(self, make: Make, by: str) -> None:
        scorer = make(by=by)
        sign = 1 if scorer.score_direction == "clean_low" else -1
        scores = [sign * score for score in scorer.score(WITH_BLANKS)]
        assert all(map(math.isfinite, scores))
        others = [score for score, is_blank in zip(scores, IS_BLANK, strict=True) if not is_blank]
        for score, is_blank in zip(scores, IS_BLANK, strict=True):
            assert not is_blank or score > max(others)

    def test_several_by_name(self, make: Make, back: Path) -> None:
        columns = [column.name for column in COLUMNS if column.kind != "text"]
        columns.remove("cross_entropy")
        scorer = make(columns=columns, by="cross_entropy", reverse=str(back))
        found = list(scorer.score(WITH_BLANKS))
        assert all(list(score) == [*columns, "cross_entropy"] for score in found)
        assert json.loads(json.dumps(found)) == found
        assert [score["cross_entropy"] for score in found] == list(
            make(by="cross_entropy").score(WITH_BLANKS)
        )

    def test_one_by_one_they_are_the_same(self, make: Make) -> None:
        """As the base class asks for them."""
        scorer = make(by="cross_entropy", batch_tokens=50)
        alone = [next(iter(scorer.score([pair]))) for pair in WITH_BLANKS[:8]]
        assert alone == list(make(by="cross_entropy").score(WITH_BLANKS[:8]))

    def test_pairs_are_read_as_a_stream(
        self, make: Make, module: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cut = module.cut_into_shards
        monkeypatch.setattr(module, "cut_into_shards", lambda pairs: cut(pairs, 4))
        read = []

        def pairs() -> Iterator[tuple[str, str]]:
            for number, pair in enumerate(PAIRS):
                read.append(number)
                yield pair

        scores = make().score(pairs())
        assert read == []
        first = next(scores)
        assert len(read) == 4
        assert [first, *scores] == list(make().score(PAIRS))
        assert len(read) == len(PAIRS)


class TestDecisions:
    @pytest.mark.parametrize("by", ["null_rate", "attention_mass", "cross_entropy"])
    def test_they_agree_with_each_other(self, make: Make, by: str) -> None:
        threshold = middle(list(make(by=by).score(PAIRS)))
        judge = make(by=by, threshold=threshold)
        decisions = list(judge.decisions(WITH_BLANKS))
        assert 5 < sum(decisions) < len(PAIRS) - 5
        kept = [pair for pair, is_good in zip(WITH_BLANKS, decisions, strict=True) if is_good]
        lost = [pair for pair, is_good in zip(WITH_BLANKS, decisions, strict=True) if not is_good]
        assert list(judge.filter(iter(WITH_BLANKS))) == kept
        assert list(judge.filterfalse(iter(WITH_BLANKS))) == lost
        accepted = [judge.accept(score) for score in judge.score(WITH_BLANKS)]
        assert accepted == decisions
        assert not any(d for d, is_blank in zip(decisions, IS_BLANK, strict=True) if is_blank)

    @pytest.mark.parametrize(
        "by",
        ["null_rate", "alignment_null_rate", "attention_mass", "worst_loss", "source_language"],
    )
    def test_the_ends_of_the_thresholds(self, make: Make, by: str) -> None:
        ends = make(by=by)
        everything = make(by=by, threshold=ends.accept_threshold)
        assert all(map(everything.accept, ends.score(PAIRS)))
        # What cannot be scored is no pair, whatever the threshold.
        assert list(everything.filter(WITH_BLANKS)) == PAIRS
        nothing = make(by=by, threshold=ends.reject_threshold)
        assert not list(nothing.filter(PAIRS))

    def test_several_scores_are_judged_by_one(self, make: Make) -> None:
        judge = make(columns=["cross_entropy"], by="null_rate", threshold=0.5)
        assert judge.accept({"cross_entropy": 99.0, "null_rate": 0.4})
        assert not judge.accept({"cross_entropy": 0.1, "null_rate": 0.5})


class TestProbabilities:
    def test_they_are_those_of_the_calibration(
        self, make: Make, model: Path, calibration: Path
    ) -> None:
        numbered = [NumberedPair(n, *pair) for n, pair in enumerate(PAIRS, start=1)]
        features = [one.features for one in PairScorer.load(model).score(numbered)]
        columns = {
            column.name: np.array([column.read(one) for one in features], dtype=float)  # type: ignore[arg-type]
            for column in COLUMNS
            if column.kind != "text"
        }
        expected = NoiseCalibration.read(calibration).judge(columns).probability
        scorer = make(calibration=str(calibration))
        scores = list(scorer.score(WITH_BLANKS))
        assert scorer.by == "probability"
        assert scorer.score_direction == "clean_high"
        assert [s for s, is_blank in zip(scores, IS_BLANK, strict=True) if is_blank] == [0.0] * 3
        found = [s for s, is_blank in zip(scores, IS_BLANK, strict=True) if not is_blank]
        assert found == pytest.approx(list(expected), rel=1e-9, abs=1e-300)

    def test_half_is_the_threshold_unless_given(self, make: Make, calibration: Path) -> None:
        judge = make(calibration=str(calibration))
        assert (judge.accept(0.5), judge.accept(0.49)) == (True, False)
        strict = make(calibration=str(calibration), threshold=0.9)
        assert not strict.accept(0.89)

    def test_beside_columns(self, make: Make, calibration: Path) -> None:
        scorer = make(
            calibration=str(calibration), columns=["probability", "null_rate"], by="null_rate"
        )
        for score in scorer.score(PAIRS[:3]):
            assert list(score) == ["probability", "null_rate"]

    def test_of_other_models(self, module: ModuleType, back: Path, calibration: Path) -> None:
        with pytest.raises(module.ConfigurationError, match=r"calibration .*other scores: MODEL/"):
            module.NullAttentionFilter(model=str(back), calibration=str(calibration))


class TestModels:
    def test_paths_start_at_the_output_directory(self, module: ModuleType, model: Path) -> None:
        inside = module.NullAttentionFilter(model=model.name, workdir=str(model.parent))
        assert list(inside.score(PAIRS[:2]))

    def test_nothing_is_loaded_before_the_first_pair(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PairScorer, "load", None)
        assert make().score_direction == "clean_low"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"by": "probability"}, r"probability needs a calibration; .*--calibrate"),
        ({"calibration": "nothing.json"}, r"nothing\.json"),
        ({"calibration": 3}, r"calibration must be a file, got 3"),
        ({"treshold": 0.5}, r"NullAttentionFilter: there is no parameter 'treshold'; .*threshold"),
        ({"by": "nulls"}, r"by: there is no column 'nulls'; choose from null_rate, .*language"),
        ({"by": "unsupported"}, r"by: there is no column 'unsupported'"),
        ({"by": "word_ratio"}, r"by: there is no column 'word_ratio'"),
        ({"threshold": "low"}, r"threshold must be a number, got 'low'"),
        ({"threshold": math.nan}, r"threshold must be a number, got nan"),
        ({"threshold": True}, r"threshold must be a number, got True"),
        ({"columns": "null_rate"}, r"columns must be a list of names, got 'null_rate'"),
        ({"columns": []}, r"columns must be a list of names, got \[\]"),
        ({"columns": ["worst_token"]}, r"columns: there is no column 'worst_token'; choose from"),
        ({"batch_tokens": 0}, r"batch_tokens must be a whole number of at least 1, got 0"),
        ({"max_tokens": 1.5}, r"max_tokens must be a whole number of at least 1, got 1.5"),
        ({"max_tokens": 10**9}, r"attention of .*model.*memory.*set max_tokens to less"),
        ({"model": None}, r"model must be a model directory, got None"),
        ({"model": "/none"}, r"NullAttentionFilter: /none is no model directory: there is no such"),
        ({"reverse": 3}, r"reverse must be a model directory, got 3"),
        ({"by": "dual_cross_entropy"}, r"dual_cross_entropy needs a model of the other direction"),
        (
            {"columns": ["reverse_worst_span_loss"]},
            r"reverse_worst_span_loss needs a model of the other direction; name it as reverse",
        ),
    ],
)
def test_wrong_parameters(
    make: Make, module: ModuleType, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(module.ConfigurationError, match=message) as caught:
        make(**parameters)
    assert "\n" not in str(caught.value)


def test_a_reverse_model_of_the_same_direction(make: Make, module: ModuleType, model: Path) -> None:
    message = "NullAttentionFilter: reverse .*: the models .* opposite.*train RECIPE --reverse$"
    with pytest.raises(module.ConfigurationError, match=message):
        make(reverse=str(model))


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (
            "alignment_null_rate",
            "needs a choice of heads or an alignment layer, .* relakit align .* --select",
        ),
        ("target_language", "needs languages.json, which .* does not have"),
    ],
)
def test_columns_that_a_model_cannot_fill(
    make: Make, module: ModuleType, back: Path, by: str, message: str
) -> None:
    with pytest.raises(module.ConfigurationError, match=f"{by} {message}"):
        make(model=str(back), by=by)


def test_attention_that_is_never_null(make: Make, module: ModuleType, tmp_path: Path) -> None:
    softmax = str(write_model(tmp_path / "model", attention="softmax"))
    for column in ("null_rate", "uncovered_words"):
        with pytest.raises(module.ConfigurationError, match=f"by: {column} is the same for all"):
            make(model=softmax, by=column)
    assert make(model=softmax, by="unsupported_words").by == "unsupported_words"
    assert make(model=softmax).by == "cross_entropy"
    assert make(model=softmax).score_direction == "clean_low"


def test_no_threshold(make: Make, module: ModuleType) -> None:
    with pytest.raises(module.ConfigurationError, match="threshold: name one to filter by cross_e"):
        list(make().filter(PAIRS))


def test_three_files(make: Make, module: ModuleType) -> None:
    with pytest.raises(module.ConfigurationError, match="two files, a source and a target, got 3"):
        list(make().score([("a", "b", "c")]))


def test_without_opusfilter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "relakit.opusfilter", raising=False)
    monkeypatch.setitem(sys.modules, "opusfilter", None)
    with pytest.raises(ImportError, match=r"^[^\n]*pip install 'relakit\[opusfilter\]'$"):
        importlib.import_module("relakit.opusfilter")


CONFIGURATION = """
common:
  output_directory: {folder}
steps:
  - type: filter
    parameters:
      inputs: [all.en, all.de]
      outputs: [kept.en, kept.de]
      filters:
        - NullAttentionFilter: {{model: {model}, by: cross_entropy, threshold: {threshold}}}
          module: relakit.opusfilter
  - type: score
    parameters:
      inputs: [all.en, all.de]
      output: scores.jsonl
      filters:
        - NullAttentionFilter: {{model: {model}, columns: [null_rate, cross_entropy]}}
          module: relakit.opusfilter
"""


@needs_opusfilter
@pytest.mark.slow
def test_a_configuration(make: Make, model: Path, tmp_path: Path) -> None:
    """OpusFilter itself runs it."""
    write_pairs(tmp_path, WITH_BLANKS, "all")
    scores = list(make(by="cross_entropy").score(WITH_BLANKS))
    threshold = middle(scores)
    text = CONFIGURATION.format(folder=tmp_path, model=model, threshold=threshold)
    (tmp_path / "run.yaml").write_text(text)
    program = Path(sys.executable).with_name("opusfilter")
    subprocess.run([program, tmp_path / "run.yaml"], check=True, capture_output=True)
    kept = [pair for pair, score in zip(WITH_BLANKS, scores, strict=True) if score < threshold]
    for number, name in enumerate(("kept.en", "kept.de")):
        assert (tmp_path / name).read_text() == "".join(f"{pair[number]}\n" for pair in kept)
    lines = (tmp_path / "scores.jsonl").read_text().splitlines()
    found = [json.loads(line)["NullAttentionFilter"] for line in lines]
    assert [score["cross_entropy"] for score in found] == scores
