"""What is analyzed of a run, where, and what of it is missing."""

import gzip
from pathlib import Path

import pytest
from made_up_records import made_up_alignment, made_up_analysis, made_up_ranking, made_up_record
from model_folders import write_model
from small_reproduction import places_in

from relakit.reproduce import analyses, figures
from relakit.reproduce.analyses import analyze_run, missing_analyses, wanted_analyses
from relakit.reproduce.runs import Run
from relakit.train.recipe import Recipe


def run(corpus: str, **changed: object) -> Run:
    fields = {"scale": "deep", "corpus": corpus, "row": "rela-g", "seed": 1, **changed}
    return Run(**fields)  # type: ignore[arg-type]


def test_generated_text_has_gold_links(tmp_path: Path) -> None:
    assert wanted_analyses(run("generated"), places_in(tmp_path)) == [
        "attention", "planted noise", "generated",
    ]  # fmt: skip


@pytest.mark.parametrize("reason", [None, "there is no aligner"])
def test_multi30k_has_links_where_there_is_an_aligner(
    reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses, "why_no_eflomal", lambda: reason)
    wanted = wanted_analyses(run("multi30k-en-de"), places_in(tmp_path))
    assert ("eflomal" in wanted) == (reason is None)
    here = places_in(tmp_path)
    (here.silver / "multi30k-en-de").mkdir(parents=True)
    assert "eflomal" in wanted_analyses(run("multi30k-en-de"), here), "links that were kept"
    assert ("eflomal" in wanted_analyses(run("multi30k-de-en"), here)) == (reason is None)


def test_europarl_has_what_is_in_the_data(tmp_path: Path) -> None:
    europarl = run("europarl-en-de")
    assert wanted_analyses(europarl, places_in(tmp_path)) == ["attention", "planted noise"]
    data = places_in(tmp_path).data
    (data / "alignment-rwth-de-en").mkdir(parents=True)
    (data / "paracrawl-labels").mkdir()
    (data / "paracrawl-labels" / "v3.en-de.tsv.gz").touch()
    assert wanted_analyses(europarl, places_in(tmp_path)) == [
        "attention", "planted noise", "RWTH", "ParaCrawl labels",
    ]  # fmt: skip


def test_the_papers_own_corpus_is_asked_about_its_gold_set(tmp_path: Path) -> None:
    (places_in(tmp_path).data / "alignment-rwth-de-en").mkdir(parents=True)
    wanted = wanted_analyses(run("wmt14-en-de", scale="paper"), places_in(tmp_path))
    assert wanted == ["attention", "planted noise", "RWTH"]


def test_missing(tmp_path: Path) -> None:
    here = places_in(tmp_path)
    record = made_up_record(scale="deep", corpus="europarl-en-de")
    assert missing_analyses(record, here) == ["attention", "planted noise"]
    record = record.model_copy(update={"attention": made_up_analysis()})
    assert missing_analyses(record, here) == ["planted noise"]
    record = record.model_copy(update={"rankings": {"planted noise": made_up_ranking(0.6)}})
    assert missing_analyses(record, here) == []


def test_nothing_is_missing_of_a_failed_run(tmp_path: Path) -> None:
    assert missing_analyses(made_up_record(bleu=None), places_in(tmp_path)) == []


@pytest.mark.parametrize("why_not", [None, "matplotlib is missing"])
def test_figures_of_examples_are_drawn_once_they_can_be(
    why_not: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "why_no_figures", lambda: why_not)
    here = places_in(tmp_path)
    record = made_up_record(
        scale="deep",
        corpus="generated",
        attention=made_up_analysis(),
        rankings={"planted noise": made_up_ranking(0.6)},
        alignments={"generated": made_up_alignment(0.5)},
    )
    assert missing_analyses(record, here) == ([] if why_not else ["attention"])
    drawn = here.results / "figures" / "deep-generated-figure9.svg"
    drawn.parent.mkdir(parents=True)
    drawn.touch()
    assert missing_analyses(record, here) == []


def test_gold_links_and_labels_by_people(tmp_path: Path) -> None:
    """A random model of Europarl's direction, on tiny files like those of the real sets."""
    places = places_in(tmp_path)
    rwth, labels = places.data / "alignment-rwth-de-en", places.data / "paracrawl-labels"
    rwth.mkdir(parents=True)
    labels.mkdir()
    texts = {"de": "Ein alter Hund .\n", "en": "An old dog .\n", "talp": "1-1 2-2 3-3 4p4\n"}
    for name, text in texts.items():
        (rwth / f"test.{name}.gz").write_bytes(gzip.compress((text * 3).encode()))
    lines = [
        f"An old dog {n}.\tEin alter Hund {n}.\t0.5\t{label}\n"
        for label in ("V", "A", "L", "MT")
        for n in range(8)
    ]
    (labels / "v3.en-de.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    write_model(tmp_path / "model")
    before = made_up_record(
        scale="deep",
        corpus="europarl-en-de",
        attention=made_up_analysis(),
        rankings={"planted noise": made_up_ranking(0.6)},
    )
    recipe = Recipe.model_validate({"data": {"folder": "unused"}, "training": {"updates": 1}})
    *_, after = analyze_run(before, recipe, tmp_path, places)
    assert after.attention == before.attention, "only what was missing is measured"
    assert after.rankings["planted noise"] == before.rankings["planted noise"]
    study = after.alignments["RWTH"]
    assert study.result.pairs == 3
    assert study.result.normal.layers[0].sure == 9
    assert set(study.estimates) == {"ignored", "competes"}
    people = after.rankings["ParaCrawl labels"]
    assert set(people.by_label) == {"A", "L"}, "machine translations are neither good nor bad"
    assert people.overall.given_score is not None
    assert people.overall.given_score.value == 0.5, "all pairs have the same score"
    # Every other pair is for choosing heads.
    assert (people.overall.good, people.overall.bad, people.chosen_on) == (4, 8, 12)
    assert missing_analyses(after, places) == []
