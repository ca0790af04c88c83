"""benchmarks/alignment.py: ways of aligning, their result files, their page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from random_models import random_model
from typer.testing import CliRunner, Result

import alignment
from alignment_study import material, systems
from alignment_study.page import make_page
from alignment_study.records import Trained, read_alignment_records, score, write_record
from relakit.align.choice import CHOICE_FILE
from relakit.analysis import AnalysisPair, generated_gold_pair
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ModelAbout, save_model
from relakit.reproduce.eflomal import TwoWayLinks
from relakit.train.recipe import Recipe

GENERATED = {"train": 60, "valid": 20, "test": 12}


def gold_pairs(count: int = 4) -> list[AnalysisPair]:
    return [generated_gold_pair(pair) for pair in generate_pairs(count)]


def test_all_right_and_nothing_at_all() -> None:
    pairs = gold_pairs()
    links = [pair.gold.sure for pair in pairs if pair.gold is not None]
    right = score("generated", "rela-g", "attention", pairs, links, about="all of them")
    assert (right.aer.value, right.null_right, right.null_wrong) == (0, 1, 0)
    none = score("generated", "rela-g", "attention", pairs, [frozenset()] * 4, about="none")
    assert (none.aer.value, none.null_right, none.null_wrong) == (1, 1, 1)


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    pairs = gold_pairs()
    record = score(
        "generated", "rela-g", "layer, both directions", pairs, [frozenset({(0, 0)})] * 4, about="x"
    )
    write_record(tmp_path, record)
    assert [path.name for path in tmp_path.iterdir()] == [
        "generated-rela-g-layer-both-directions.json"
    ]
    assert read_alignment_records(tmp_path) == [record]
    there = Trained(verdict="finished", updates=7000, bleu=1.54)
    back = Trained(verdict="stopped", updates=7, bleu=None)
    trained = replace(record, trained=(there, back))
    write_record(tmp_path, trained)
    assert read_alignment_records(tmp_path) == [trained]
    said = (
        "The model with rela-g was trained for 7,000 updates and reaches 1.5 BLEU. The model with "
        "rela-g in the other direction was trained for 7 updates and is not finished.\n"
    )
    assert said in make_page([record, trained, trained])
    page = make_page([record])
    assert f"| rela-g | layer, both directions | x | {100 * record.aer.value:.1f} (" in page
    assert "Europarl" not in page, "without a record there is no section"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models of both directions with random weights, and a corpus as small."""
    recipe = Recipe.model_validate({"data": {"generated": GENERATED}, "training": {"updates": 1}})
    monkeypatch.setattr(material, "study_recipe", lambda *about: recipe)
    texts = [text for pair in generate_pairs(60) for text in (pair.source_text, pair.target_text)]
    tokenizer = learn_tokenizer(texts, 300)
    tokenizer.save(tmp_path / "tokenizer.json")
    for name, about in {
        "rela-g": ModelAbout("en", "de"),
        "rela-g-reverse": ModelAbout("de", "en"),
    }.items():
        model = random_model(vocabulary=tokenizer.size, seed=len(name), dim=16, heads=2)
        folder = tmp_path / "models" / "generated" / name / "model"
        save_model(folder, model, tmp_path / "tokenizer.json", about)
    return tmp_path / "models"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alignment.app, arguments)


def test_every_way_is_scored(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "why_no_eflomal", lambda: None)
    ending = {"verdict": "finished", "updates": 1500, "scores": {"test": {"bleu": 12.34}}}
    run_result = models / "generated" / "rela-g" / "result.json"
    run_result.write_text(json.dumps(ending), encoding="utf-8")
    links = TwoWayLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)}))
    monkeypatch.setattr(systems, "eflomal_links", lambda others, pairs, cache: [links] * len(pairs))
    before = {path: path.read_bytes() for path in models.rglob("*") if path.is_file()}
    out = tmp_path / "results" / "alignment"
    kept = tmp_path / "kept"
    where = ("--models", str(models), "--keep", str(kept), "--out", str(out))
    result = run("generated", "--layer-epochs", "1", *where)
    assert result.exit_code == 0, result.output
    ways = {(record.system, record.way) for record in read_alignment_records(out)}
    directions = ("one direction", "other direction", "both directions")
    assert ways == {
        *(
            ("rela-g", f"{way}, {reading}")
            for way in ("AoL", "AoH")
            for reading in ("normal", "shifted")
        ),
        *(
            ("rela-g", f"{what}, {where}")
            for what in ("attention", "layer")
            for where in directions
        ),
        *(("eflomal", where) for where in directions),
    }
    assert {model.name for model in kept.iterdir()} == {"rela-g", "rela-g-reverse"}
    assert (kept / "rela-g" / CHOICE_FILE).is_file()
    page = (tmp_path / "results" / "alignment.md").read_text(encoding="utf-8")
    assert "The model with rela-g was trained for 1,500 updates and reaches 12.3 BLEU." in page
    assert page.count("\n| ") == len(ways) + 2
    assert {path: path.read_bytes() for path in models.rglob("*") if path.is_file()} == before


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_train", lambda *about: pytest.fail("trains before it checks"))
    result = run("klingon")
    assert isinstance(result.exception, ValueError)
    assert "unknown study 'klingon'; choose one of generated, europarl" in str(result.exception)
    result = run("generated", "--train", "--keep", str(Path(__file__).parent))
    assert "--keep must name an empty or a new folder" in str(result.exception)
    result = run("generated", "--models", str(tmp_path), "--no-eflomal")
    assert "has no model named softmax or rela-g; --train makes them" in str(result.exception)
