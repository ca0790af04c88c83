"""benchmarks/filtering.py: how well noise is told from clean pairs."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from random_models import random_model
from typer.testing import CliRunner, Result

import filtering
from filter_study import downstream, material
from filter_study.material import LABELLED, Material
from filter_study.measure import ANY, BICLEANER, CALIBRATED_CLEAN, CALIBRATED_SELF, inserted_words
from filter_study.page import EARLIER, make_page
from filter_study.records import (
    FilterRecord,
    Separation,
    read_filter_records,
    with_earlier_row,
    write_filter_record,
)
from relakit.analysis.estimate import Estimate
from relakit.bench.machine import describe_machine
from relakit.clean.score import SCORING
from relakit.data.generated import generate_pairs
from relakit.data.languages import LanguagePair
from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ModelAbout, save_model
from relakit.train.recipe import Recipe

KINDS = {"shuffled", "inserted", "truncated", "language", "copied"}


def test_inserted_words() -> None:
    assert inserted_words("a b c", "a x y b c") == {1, 2}
    assert inserted_words("a b", "x a b") == {0}
    assert inserted_words("a b", "a b x y") == {2, 3}
    assert len(inserted_words("a a", "a b a a")) == 2, "where it was put is not clear, how much is"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With random weights, and a corpus that is as small."""
    generated = {"train": 60, "valid": 250, "test": 500}
    recipe = Recipe.model_validate({"data": {"generated": generated}, "training": {"updates": 1}})
    monkeypatch.setattr(material, "study_recipe", lambda *about: recipe)
    pairs = [(pair.source_text, pair.target_text) for pair in generate_pairs(60)]
    tokenizer = learn_tokenizer([text for pair in pairs for text in pair], 300)
    tokenizer.save(tmp_path / "tokenizer.json")
    return save_model(
        tmp_path / "model",
        random_model(vocabulary=tokenizer.size, dim=16, heads=2),
        tmp_path / "tokenizer.json",
        ModelAbout("en", "de"),
        languages=LanguagePair.learn(*zip(*pairs, strict=True)),
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(filtering.app, arguments)


def test_planted_noise(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "results" / "filtering"
    result = run("rank", "generated", "--model", str(model), "--no-eflomal", "--out", str(out))
    assert result.exit_code == 0, result.output
    (record,) = read_filter_records(out)
    assert sum(record.pairs.values()) == 500
    assert set(record.pairs) == {"clean", *KINDS}
    for measure in (CALIBRATED_CLEAN, CALIBRATED_SELF, "null_rate", "cross_entropy"):
        assert set(record.separations[measure]) == {ANY, *KINDS}
    copied = record.separations[CALIBRATED_CLEAN]["copied"].auc
    assert copied.value > 0.9, "languages tell, whatever the model does"
    assert record.words is not None
    assert record.words.words > 0
    page = (tmp_path / "results" / "filtering.md").read_text(encoding="utf-8")
    assert page == make_page([record])
    assert f"| {CALIBRATED_CLEAN} |" in page
    assert EARLIER not in page
    assert EARLIER in make_page([replace(record, scoring=SCORING - 1)])


def test_pairs_that_people_have_judged(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "paracrawl-labels"
    folder.mkdir(parents=True)
    rows = [
        (pair.source_text, pair.target_text, score, label)
        for number, pair in enumerate(generate_pairs(400, split="test"))
        for score, label in [((0.9, "V"), (0.2, "A"), (0.1, "L"), (0.5, "E"))[number % 4]]
    ]
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (folder / "v3.en-de.tsv.gz").write_bytes(gzip.compress(text.encode()))
    out = tmp_path / "results" / "filtering"
    data = str(tmp_path / "data")
    result = run(
        "rank", LABELLED, "--model", str(model), "--data", data, "--no-eflomal", "--out", str(out)
    )
    assert result.exit_code == 0, result.output
    (record,) = read_filter_records(out)
    assert record.words is None
    assert record.separations[BICLEANER]["A"].auc.value == 1.0
    assert "| misaligned | wrong language | errors in the translation |" in make_page([record])


def test_an_unknown_study() -> None:
    with pytest.raises(ValueError, match="unknown study 'klingon'; choose one of generated"):
        Material.of("klingon", Path())


def test_downstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands are not run: their results are made up."""
    calls = []

    def run_command(*arguments: str) -> None:
        calls.append(arguments[0])
        out = Path(arguments[arguments.index("--out" if "--out" in arguments else "--output") + 1])
        out.mkdir(parents=True, exist_ok="--resume" in arguments)
        if arguments[0] == "train":
            bleu = {"noisy": 50.0, "kept": 89.0, "clean": 90.0}[out.name]
            scores = {"test": {"bleu": bleu, "bleu_signature": "a signature"}}
            result = {"verdict": "finished", "scores": scores}
            (out / "result.json").write_text(json.dumps(result), encoding="utf-8")
            return
        (out / "filter.json").write_text("{}", encoding="utf-8")
        for language in ("en", "de"):
            text = (tmp_path / "work" / "noisy-text" / f"train.{language}").read_text("utf-8")
            kept = [line for n, line in enumerate(text.splitlines()) if n % 2]
            (out / f"kept.{language}").write_text("\n".join(kept) + "\n", encoding="utf-8")

    monkeypatch.setattr(downstream, "_run", run_command)
    small = ["data.generated.train=100", "data.generated.valid=5", "data.generated.test=5"]
    settings = [argument for setting in small for argument in ("--set", setting)]
    out = tmp_path / "results" / "filtering"
    arguments = ("downstream", "--work", str(tmp_path / "work"), *settings, "--out", str(out))
    stopped = tmp_path / "work" / "noisy" / "result.json"
    stopped.parent.mkdir(parents=True)
    stopped.write_text('{"verdict": "stopped", "scores": {}}', encoding="utf-8")
    assert run(*arguments).exit_code == 0
    assert calls == ["train", "filter", "train", "train"], "what was stopped is resumed"
    found = downstream.read_downstream(tmp_path / "results" / "filtering-downstream.json")
    assert found is not None
    assert (found.pairs["noisy"], found.pairs["kept"]) == (100, 50)
    assert 40 < found.pairs["clean"] < 80
    assert 0 < found.kept_clean < 50
    page = (tmp_path / "results" / "filtering.md").read_text(encoding="utf-8")
    assert "| what the filter kept | 50 | 89.0 |" in page
    assert run(*arguments).exit_code == 0
    assert len(calls) == 4, "what is there is not made again"
    assert "The demo's recipe, `data.generated.train=100`, `data.generated.valid=5`" in page
    assert run(*arguments, "--set", "training.threads=2").exit_code == 0, "the same models"
    found = downstream.read_downstream(tmp_path / "results" / "filtering-downstream.json")
    other = run("downstream", "--work", str(tmp_path / "work"), "--out", str(out))
    assert isinstance(other.exception, ValueError)
    assert "trained with --set data.generated.train=100 --set" in str(other.exception)
    assert "not with no --set; give the same settings as then" in str(other.exception)
    unchanged = downstream.read_downstream(tmp_path / "results" / "filtering-downstream.json")
    assert unchanged == found


def test_a_row_that_was_not_measured_again_is_kept(tmp_path: Path) -> None:
    """At its place, the last, and only if it is about the same pairs."""

    def record(auc: float, *measures: str, pairs: int = 9) -> FilterRecord:
        found = {"inserted": Separation(auc=Estimate(value=auc, low=auc, high=auc), precision=0.5)}
        return FilterRecord(
            study="generated",
            models="two",
            pairs={"clean": pairs},
            separations=dict.fromkeys(measures, found),
            machine=describe_machine(),
        )

    new = record(0.8, "null rate")
    assert with_earlier_row(tmp_path, new, "eflomal") == new, "there is no earlier one"
    write_filter_record(tmp_path, record(0.7, "eflomal", "null rate"))
    kept = with_earlier_row(tmp_path, new, "eflomal")
    aucs = {name: kinds["inserted"].auc.value for name, kinds in kept.separations.items()}
    assert list(aucs.items()) == [("null rate", 0.8), ("eflomal", 0.7)]
    other = record(0.8, "null rate", pairs=10)
    assert with_earlier_row(tmp_path, other, "eflomal") == other
    measured = record(0.9, "eflomal", "null rate")
    assert with_earlier_row(tmp_path, measured, "eflomal") == measured
