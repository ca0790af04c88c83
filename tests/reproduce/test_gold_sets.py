"""Gold links by people, and by an aligner, which is a script here."""

import gzip
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from relakit.analysis import AnalysisPair, GoldAlignment
from relakit.reproduce.corpora import CORPORA
from relakit.reproduce.eflomal import why_no_eflomal
from relakit.reproduce.gold_sets import gold_digest, rwth_pairs, silver_pairs
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe

GERMAN = ["Das ist gut .", "Herr Präsident , ja !"]
ENGLISH = ["That is good .", "Yes , Mr President !"]
TALP = ["1-1 2-2 3p3 4-4", "1p3 2-4 4-1"]


def write_rwth(data: Path, **changed: list[str]) -> None:
    folder = data / "alignment-rwth-de-en"
    folder.mkdir(parents=True)
    for name, lines in {"de": GERMAN, "en": ENGLISH, "talp": TALP, **changed}.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"test.{name}.gz").write_bytes(gzip.compress(text.encode()))


def test_rwth_from_german(tmp_path: Path) -> None:
    write_rwth(tmp_path)
    first, second = rwth_pairs(tmp_path, CORPORA["multi30k-de-en"])
    assert (first.source, first.target) == ("Das ist gut.", "That is good.")
    assert (second.source, second.target) == ("Herr Präsident, ja!", "Yes, Mr President!")
    assert [second.source[slice(*span)] for span in second.source_words] == GERMAN[1].split()
    assert second.gold == GoldAlignment(frozenset({(1, 3), (3, 0)}), frozenset({(0, 2)}))


def test_rwth_from_english(tmp_path: Path) -> None:
    write_rwth(tmp_path)
    first, second = rwth_pairs(tmp_path, CORPORA["europarl-en-de"])
    assert (first.source, first.target) == ("That is good.", "Das ist gut.")
    assert first.gold is not None
    assert first.gold.sure == {(0, 0), (1, 1), (3, 3)}
    assert second.gold == GoldAlignment(frozenset({(3, 1), (0, 3)}), frozenset({(2, 0)}))


@pytest.mark.parametrize("name", ["en", "talp"])
def test_rwth_files_of_different_lengths(name: str, tmp_path: Path) -> None:
    write_rwth(tmp_path, **{name: ["1-1"]})
    with pytest.raises(ValueError, match=r"has 2 lines, .* has 1:") as caught:
        rwth_pairs(tmp_path, CORPORA["multi30k-de-en"])
    assert f"test.{name}.gz" in str(caught.value)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Of a corpus of six pairs."""
    folder = tmp_path / "text"
    folder.mkdir()
    for name, count in {"train": 3, "valid": 1, "test": 2}.items():
        for language in ("en", "de"):
            text = "".join(f"{name} {language}, {n}!\n" for n in range(count))
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    content = {"data": {"folder": folder}, "training": {"updates": 1}}
    return Recipe.model_validate(content)


@pytest.fixture
def aligner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Installs a script as the aligner, and returns the folder that it is in."""

    def install(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "eflomal-align"
        program.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        return folder

    return install


# Every word goes with its neighbour, but in the one direction the last with the first.
ALIGN = """
folder=$(dirname "$0")
cp source "$folder/source"; cp target "$folder/target"; echo "$@" >> "$folder/calls"
sed 's/.*/0-0 1-1 3-3/' source > forward
sed 's/.*/0-0 1-1 3-0/' source > reverse
"""


def test_silver(
    recipe: Recipe, aligner: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = aligner(ALIGN)
    assert why_no_eflomal() is None
    pairs = silver_pairs(recipe, tmp_path / "cache")
    assert [pair.source for pair in pairs] == ["test en, 0!", "test en, 1!"]
    for pair in pairs:
        assert pair.gold == GoldAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(3, 3), (3, 0)}))
    # All pairs of the corpus, the test set last, in words.
    lines = (folder / "target").read_text(encoding="utf-8").splitlines()
    assert lines == [
        *(f"train de , {n} !" for n in range(3)), "valid de , 0 !",
        *(f"test de , {n} !" for n in range(2)),
    ]  # fmt: skip
    assert silver_pairs(recipe, tmp_path / "cache") == pairs
    calls = folder / "calls"
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 1, "links are kept"
    # Of this text: another of the same length has its own.
    test = recipe.data.folder / "test.de"  # type: ignore[operator]
    test.write_text(test.read_text(encoding="utf-8").replace("de", "da"), encoding="utf-8")
    silver_pairs(recipe, tmp_path / "cache")
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 2


def test_links_of_a_faster_run_are_kept(
    recipe: Recipe, aligner: Callable[[str], Path], tmp_path: Path
) -> None:
    """Two runs on the same corpus may want links at the same time."""
    cache = tmp_path / "cache"
    aligner(ALIGN)
    silver_pairs(recipe, tmp_path / "earlier")
    (earlier,) = (tmp_path / "earlier").iterdir()
    there = cache / earlier.name
    faster = (
        f"mkdir -p '{there}'; for f in forward reverse; do printf '2-2\\n2-2\\n' > '{there}'/$f; "
        "done"
    )
    aligner(f"{ALIGN}\n{faster}")
    pairs = silver_pairs(recipe, cache)
    assert [pair.gold for pair in pairs] == [GoldAlignment(frozenset({(2, 2)}))] * 2


def test_an_aligner_that_fails(
    recipe: Recipe, aligner: Callable[[str], Path], tmp_path: Path
) -> None:
    aligner("echo 'no memory' >&2; exit 3")
    with pytest.raises(ValueError, match="eflomal-align ended with status 3: no memory"):
        silver_pairs(recipe, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_no_aligner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = why_no_eflomal()
    assert reason is not None
    assert "pip install 'relakit[reproduce]'" in reason


def test_pairs_of_a_split(recipe: Recipe) -> None:
    assert [pair.target for pair in split_pairs(recipe, "valid")] == ["valid de, 0!"]


def test_generated_pairs_have_gold_links() -> None:
    generated = {"train": 5, "valid": 2, "test": 3}
    recipe = Recipe.model_validate({"data": {"generated": generated}, "training": {"updates": 1}})
    pairs = split_pairs(recipe, "test")
    assert len(pairs) == 3
    assert all(pair.gold is not None and pair.gold.sure for pair in pairs)
    assert {pair.source for pair in pairs}.isdisjoint(
        pair.source for pair in split_pairs(recipe, "train")
    )


def test_digest_of_gold_links() -> None:
    pair = AnalysisPair.from_texts("a b", "c d")
    first, second = (
        replace(pair, gold=GoldAlignment(frozenset({(0, 0)}), frozenset({(1, last)})))
        for last in (0, 1)
    )
    assert gold_digest([first, second]) == gold_digest([first, replace(second)])
    assert (
        len({gold_digest(some) for some in ([first], [second], [first, second], [second, first])})
        == 4
    )
