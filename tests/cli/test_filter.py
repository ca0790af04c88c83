"""`relakit filter`: what is kept, what is not and why, and that nothing is lost on the way."""

import gzip
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from interrupted_jobs import interrupt_after_two_shards
from model_folders import write_model
from pair_texts import pair_options, write_pairs

from relakit.clean.filter import FilterResult
from relakit.clean.filter_files import FilterCounts
from relakit.cli import main as cli
from relakit.cli.filter import summary_lines
from relakit.data.generated import generate_pairs
from relakit.data.planted_noise import plant_text_noise

TEXTS = list(dict.fromkeys((p.source_text, p.target_text) for p in generate_pairs(420)))
PAIRS = [pair.texts for pair in plant_text_noise(TEXTS, seed=3, shares={"truncated": 0.2})]
PAIRS[4:4] = [("", "Ein Hund."), ("", "")]
PAIRS[8] = ("<script>alert(1)</script> & more", "eine\tTabelle und mehr")
COUNT = len(PAIRS)
RANKABLE = COUNT - 2


class Result(NamedTuple):
    status: int
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object, command: str = "filter") -> Result:
        monkeypatch.setattr(sys, "argv", ["relakit", command, *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return Result(int(caught.value.code or 0), capsys.readouterr().err)

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("filter") / "model")


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """The options that name the pairs."""
    return pair_options(write_pairs(tmp_path, PAIRS))


@pytest.fixture
def clean(tmp_path: Path) -> list[object]:
    """The options that name clean pairs."""
    return ["--clean", *write_pairs(tmp_path, TEXTS, "clean").paths]


@pytest.fixture(scope="module")
def table(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of the pairs, made once."""
    folder = tmp_path_factory.mktemp("table")
    arguments = ["score", model, *pair_options(write_pairs(folder, PAIRS))]
    arguments += ["--output", folder / "scores.tsv", "--workers", 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["relakit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert not caught.value.code
    return folder / "scores.tsv"


def column(table: Path, name: str) -> list[float | None]:
    content = table.read_bytes()
    text = (gzip.decompress(content) if table.suffix == ".gz" else content).decode()
    names, *rows = (line.split("\t") for line in text.removesuffix("\n").split("\n"))
    cells = [row[names.index(name)] for row in rows]
    return [float(cell) if cell else None for cell in cells]


def kept(folder: Path) -> list[tuple[str, str]]:
    sides = [(folder / f"kept.{language}").read_text().splitlines() for language in ("en", "de")]
    return list(zip(*sides, strict=True))


def rejected(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "rejected.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        names, *rows = (line.rstrip("\n").split("\t") for line in file)
    return [dict(zip(names, row, strict=True)) for row in rows]


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "filter.json").read_text())
    return found


def test_the_best_share(run: Run, model: Path, files: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(model, *files, "--keep", 0.7, "--output", out, "--workers", 1)
    assert result.status == 0, result.err
    expected = round(0.7 * RANKABLE)
    entropies = column(out / "scores.tsv.gz", "cross_entropy")
    order = sorted((e, n) for n, e in enumerate(entropies) if e is not None)
    best = sorted(n for _, n in order[:expected])
    assert kept(out) == [PAIRS[place] for place in best]
    others = rejected(out)
    assert [int(row["line"]) for row in others] == [
        n + 1 for n in range(COUNT) if n not in set(best)
    ]
    limit = order[expected - 1][0]
    assert summary(out)["cut"] == pytest.approx(limit)
    assert summary(out)["reasons"] == {"cross_entropy": RANKABLE - expected, "blank": 2}
    other = next(row for row in others if row["cross_entropy"])
    blank = [row["line"] for row in others if row["reason"] == "blank" and not row["cross_entropy"]]
    assert blank == ["5", "6"]
    assert other["reason"] == f"cross_entropy {float(other['cross_entropy']):.4g} > {limit:.4g}"
    assert f"kept {expected} of {COUNT} pairs" in result.err
    assert f"the report is {out}/report.html" in result.err
    assert "2 pairs with a blank side" in result.err
    assert not list(tmp_path.glob(".*")), "no lock is left"


def test_another_cut_needs_no_other_scores(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = [model, *files, "--output", out, "--workers", 1]
    assert run(*command, "--keep", 0.7).status == 0
    scores = (out / "scores.tsv.gz").read_bytes()
    from relakit.shards.engines.in_process import InProcess

    monkeypatch.setattr(InProcess, "run", None)
    result = run(*command, "--keep", 0.5, "--compress")
    assert result.status == 0, result.err
    assert (out / "scores.tsv.gz").read_bytes() == scores
    assert sorted(path.name for path in out.iterdir() if path.name.startswith("kept")) == [
        "kept.de.gz", "kept.en.gz",
    ]  # fmt: skip
    assert summary(out)["kept"] == round(0.5 * RANKABLE)
    other = run(*command, "--keep", 0.5, "--max-tokens", 7)
    assert other.status == 1
    assert "scores.tsv.gz is there already, of another job: --max-tokens was" in other.err
    assert summary(out)["kept"] == round(0.5 * RANKABLE), "nothing was lost"


def test_scores_that_were_made_before(
    run: Run, table: Path, files: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("--scores", table, *files, "--threshold", 2, "--by", "word_ratio", "--output", out)
    assert result.status == 0, result.err
    assert {path.name for path in out.iterdir()} == {
        "filter.json", "kept.source", "kept.target", "rejected.tsv.gz", "report.html",
    }  # fmt: skip
    reasons = [row["reason"] for row in rejected(out) if row["word_ratio"]]
    assert reasons
    assert all("times less than the usual" in r or "more than" in r for r in reasons)
    usual = [1 / 2 <= r <= 2 for r in column(table, "word_ratio") if r is not None]
    assert abs(summary(out)["kept"] - sum(usual)) < 0.1 * COUNT, "the usual ratio is about 1"


def test_scores_of_another_text_with_as_many_words(
    run: Run, table: Path, files: list[object], tmp_path: Path
) -> None:
    text = tmp_path / "text.de"
    text.write_text(text.read_text().replace("Hund", "Hase"))
    command = [*files, "--keep", 0.5, "--output", tmp_path / "out"]
    result = run("--scores", table, *command)
    assert result.status == 1
    assert f"{table} has scores of another text than that of {tmp_path}/text.en and" in result.err
    assert "as its receipt scores.tsv.json tells; score this text" in result.err
    assert not (tmp_path / "out").exists()
    assert run("--scores", without_receipt(table, tmp_path), *command).status == 0


def test_text_is_kept_as_it_is(run: Run, table: Path, files: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("--scores", table, *files, "--keep", 1, "--output", out).status == 0
    sides = [(out / f"kept.{side}").read_text().splitlines() for side in ("source", "target")]
    assert list(zip(*sides, strict=True)) == [pair for pair in PAIRS if all(pair)]


def test_a_tab_stays_one_cell(run: Run, table: Path, files: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["--scores", table, *files, "--threshold", -1, "--output", out]
    assert run(*command).status == 0
    row = rejected(out)[8]
    assert (row["source"], row["target"]) == (PAIRS[8][0], "eine Tabelle und mehr")
    assert summary(out)["kept"] == 0


def test_calibrated(run: Run, model: Path, files: list[object], tmp_path: Path) -> None:
    """The model knows nothing, but lengths tell truncated pairs."""
    out = tmp_path / "out"
    command = [model, *files, "--calibrate", "--output", out, "--workers", 1]
    result = run(*command)
    assert result.status == 0, result.err
    about = json.loads((out / "calibration.json").read_text())
    assert about["fitted_on"]["origin"] == "corpus"
    assert about["held_out"]["areas"]["probability"]["truncated"]["value"] > 0.8
    assert "alignment_null_rate" not in about["features"]
    assert "the calibration does without alignment_null_rate" in result.err
    others = [row for row in rejected(out) if row["probability"]]
    assert all(float(row["probability"]) < 0.5 for row in others)
    truncated = [row["reason"] for row in others if row["reason"].startswith("looks cut off: ")]
    assert truncated
    whole = {pair.source_text: pair.target_text for pair in generate_pairs(420)}
    are_cut = [
        PAIRS[int(row["line"]) - 1][1] != whole.get(row["source"])
        for row in others
        if row["reason"].startswith("looks cut off: ")
    ]
    assert sum(are_cut) > 0.5 * len(are_cut)
    # The same again, without planting; and the calibration without a model.
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix != ".html"}
    assert run(*command).status == 0
    assert {p.name: p.read_bytes() for p in out.iterdir() if p.suffix != ".html"} == before
    used = ["--scores", out / "scores.tsv.gz", "--calibration", out / "calibration.json"]
    again = run(*used, *files, "--languages", "en,de", "--output", tmp_path / "again")
    assert again.status == 0, again.err
    assert "script>alert" not in (tmp_path / "again" / "report.html").read_text()
    assert kept(tmp_path / "again") == kept(out)
    assert rejected(tmp_path / "again") == rejected(out)


def test_on_pairs_that_are_clean(
    run: Run, model: Path, table: Path, files: list[object], clean: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = [model, "--scores", table, *files, "--calibrate", *clean, "--workers", 1]
    result = run(*command, "--keep", 0.5, "--output", out)
    assert result.status == 0, result.err
    about = json.loads((out / "calibration.json").read_text())["fitted_on"]
    assert (about["origin"], about["dropped"]) == ("clean", 0)
    assert summary(out)["kept"] == round(0.5 * RANKABLE)


def without_receipt(table: Path, folder: Path) -> Path:
    return Path(shutil.copy(table, folder / "alone.tsv"))


@pytest.mark.parametrize("is_clean_known", [False, True])
def test_scores_of_another_model(
    run: Run,
    table: Path,
    files: list[object],
    clean: list[object],
    tmp_path: Path,
    is_clean_known: bool,
) -> None:
    other = write_model(tmp_path / "other", seed=1)
    out = tmp_path / "out"
    options = [*files, "--calibrate", *(clean if is_clean_known else []), "--output", out]
    result = run(other, "--scores", table, *options, "--workers", 1)
    assert result.status == 1
    assert "was not made by this MODEL: MODEL/model.safetensors has changed; give" in result.err
    alone = without_receipt(table, tmp_path)
    result = run(other, "--scores", alone, *options, "--workers", 1)
    assert result.status == 1
    assert "alone.tsv was not made by this MODEL: it has the cross_entropy" in result.err
    assert not (out / "filter.json").exists()


def test_scores_of_another_reverse_model(
    run: Run, model: Path, files: list[object], clean: list[object], tmp_path: Path
) -> None:
    backward = [
        write_model(tmp_path / f"back{seed}", seed=seed, source="de", target="en")
        for seed in (1, 2)
    ]
    table = tmp_path / "scores.tsv"
    scoring = [model, *files, "--reverse", backward[0], "--output", table, "--workers", 1]
    assert run(*scoring, command="score").status == 0
    alone = without_receipt(table, tmp_path)
    out = tmp_path / "out"
    options = [*files, "--calibrate", *clean, "--output", out, "--workers", 1]
    other = run(model, "--scores", alone, "--reverse", backward[1], *options)
    assert other.status == 1
    assert "alone.tsv was not made by this MODEL: it has the reverse_cross_entropy" in other.err
    none = run(model, "--scores", alone, *options)
    assert "it has the reverse_cross_entropy" in none.err
    assert "MODEL says nothing; give MODEL, --reverse" in none.err
    told = run(model, "--scores", table, "--reverse", backward[1], *options)
    assert "not made by this MODEL: --reverse/model.safetensors has changed" in told.err
    same = run(model, "--scores", alone, "--reverse", backward[0], *options)
    assert same.status == 0, same.err


def test_scores_and_a_calibration_of_other_models(
    run: Run, model: Path, table: Path, files: list[object], tmp_path: Path
) -> None:
    other = write_model(tmp_path / "other", seed=1)
    out = tmp_path / "out"
    assert run(other, *files, "--calibrate", "--output", out, "--workers", 1).status == 0
    calibration = ["--calibration", out / "calibration.json"]
    result = run("--scores", table, *calibration, *files, "--output", tmp_path / "new")
    assert result.status == 1
    assert f"--scores {table}: --calibration {out}/calibration.json was fitted on" in result.err
    assert "other scores: MODEL/model.safetensors has changed" in result.err
    assert not (tmp_path / "new").exists()
    alone = without_receipt(table, tmp_path)
    result = run("--scores", alone, *calibration, *files, "--output", tmp_path / "new")
    assert result.status == 0, result.err
    assert "alone.tsv has no receipt (alone.tsv.json) that tells which models made it" in result.err


def test_a_calibration_of_another_model(
    run: Run, model: Path, table: Path, files: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["--scores", table, *files, "--calibrate", "--output", out, "--workers", 1]
    assert run(model, *command).status == 0
    other = write_model(tmp_path / "other", seed=1)
    calibration = ["--calibration", out / "calibration.json"]
    result = run(other, *files, *calibration, "--output", tmp_path / "new", "--workers", 1)
    assert result.status == 1
    assert "was fitted on other scores: MODEL/model.safetensors has changed" in result.err
    assert not (tmp_path / "new").exists()


def test_an_interrupted_restart_goes_on(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    old = [model, *files, "--keep", 0.5, "--output", out, "--workers", 1, "--shard-pairs", 100]
    assert run(*old).status == 0
    new = [*old, "--max-tokens", 7]
    with monkeypatch.context() as patch:
        interrupt_after_two_shards(patch)
        stopped = run(*new, "--restart")
    assert "stopped; the same command without --restart resumes from here" in stopped.err
    refused = run(*old)
    assert refused.status == 1
    assert "holds finished parts of another job: --max-tokens was 7" in refused.err
    again = run(*new)
    assert again.status == 0, again.err
    assert "resuming: 2 of" in again.err
    assert summary(out)["scored_with"]["--max-tokens"] == 7


def test_killed_while_it_is_written(
    run: Run, table: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = ["--scores", table, *files, "--keep", 0.5, "--output", out]
    assert run(*command).status == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    from relakit.clean.filter_files import PairWriter

    def stop(self: PairWriter, *arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PairWriter, "write", stop)
        stopped = run(*command[:-2], "--compress", "--output", out)
    assert stopped.status == 130
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_all_pairs_in_one_file(run: Run, model: Path, tmp_path: Path) -> None:
    memory = tmp_path / "pairs.tmx"
    sides = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'
    memory.write_text(f"<tmx><body>{''.join(sides.format(*p) for p in TEXTS[:50])}</body></tmx>")
    out = tmp_path / "out"
    result = run(model, "--source", memory, "--keep", 0.5, "--output", out, "--workers", 1)
    assert result.status == 0, result.err
    assert len(kept(out)) == 25
    assert set(kept(out)) < set(TEXTS)


def test_few_reasons_are_named() -> None:
    counts = FilterCounts(kept=4, reasons=Counter({"a": 5, "b": 4, "c": 3, "d": 2, "e": 1, "f": 1}))
    lines = list(summary_lines(FilterResult(Path("out"), counts, "x <= 1", None)))
    assert lines[1] == "rejected 16: a 5, b 4, c 3, d 2, and 2 for other reasons"
    few = FilterCounts(kept=4, reasons=Counter({"a": 5, "b": 4}))
    assert list(summary_lines(FilterResult(Path("out"), few, "x <= 1", None)))[1] == (
        "rejected 9: a 5, b 4"
    )


def test_nothing_of_another_corpus_stays(
    run: Run, model: Path, table: Path, files: list[object], tmp_path: Path
) -> None:
    """Scores are refused, as they would be lost; another cut of the same text loses nothing."""
    out = tmp_path / "out"
    scored = [model, *files, "--output", out, "--workers", 1]
    assert run(*scored, "--calibrate").status == 0
    other = run("--scores", table, *files, "--keep", 0.5, "--output", out)
    assert other.status == 1
    assert f"out holds other scores (scores.tsv.gz) than --scores {table}" in other.err
    before = {path.name for path in out.iterdir()}
    fitted = (out / "calibration.json").read_bytes()
    own = ["--scores", out / "scores.tsv.gz", *files, "--output", out]
    for cut in (["--keep", 0.5], ["--calibration", out / "calibration.json"]):
        again = run(*own, *cut)
        assert again.status == 0, again.err
        assert {path.name for path in out.iterdir()} == before
        assert {"kept.en", "kept.de", "planted.tsv.gz", "planted-scores.tsv.gz"} < before
        assert (out / "calibration.json").read_bytes() == fitted
    another = shutil.copy(out / "calibration.json", tmp_path)
    assert run(*own, "--calibration", another).status == 0
    assert {path.name for path in out.iterdir()} == {
        name for name in before if not name.startswith("planted")
    }
