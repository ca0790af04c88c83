"""Which figures are drawn of which runs, and where."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from made_up_records import evidence_of, made_up_alignment, made_up_analysis, made_up_record

from relakit.reproduce import figures
from relakit.reproduce.figures import example_paths, figure_paths, shows_examples, write_figures
from relakit.reproduce.runs import Run

ANALYSIS = made_up_analysis(null_rate={"cross": [0.1, 0.6, 0.2]})
GOLD = {"RWTH": made_up_alignment(0.5)}


def test_paths() -> None:
    evidence = evidence_of(made_up_record(attention=ANALYSIS, alignments=GOLD))
    name = "figures/tiny-multi30k-en-de-figure"
    assert figure_paths(evidence, 3) == [("Multi30k en-de, tiny", f"{name}3.svg")]
    assert figure_paths(evidence, 4) == [("Multi30k en-de, tiny, RWTH links", f"{name}4-rwth.svg")]


def test_runs_without_analyses_have_no_figures() -> None:
    evidence = evidence_of(made_up_record())
    assert [figure_paths(evidence, number) for number in (3, 4, 5, 6)] == [[]] * 4


def test_null_rates_are_of_our_model_alone() -> None:
    evidence = evidence_of(made_up_record("softmax", attention=ANALYSIS))
    assert figure_paths(evidence, 6) == []
    assert len(figure_paths(evidence, 3)) == 1


def test_drawings_are_where_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    evidence = evidence_of(made_up_record(attention=ANALYSIS, alignments=GOLD), results=tmp_path)
    write_figures(evidence)
    paths = [path for number in (3, 4, 5, 6) for _, path in figure_paths(evidence, number)]
    assert len(paths) == 4
    drawn = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.svg"))
    assert drawn == sorted(paths)


def test_only_text_of_our_own_is_shown() -> None:
    def run(corpus: str, row: str = "rela-g", seed: int = 1) -> Run:
        return Run(scale="deep", corpus=corpus, row=row, seed=seed)

    assert shows_examples(run("generated"))
    assert not shows_examples(run("europarl-en-de"))
    assert not shows_examples(run("generated", "softmax"))
    assert not shows_examples(run("generated", seed=2))


def test_examples_replace_those_of_an_earlier_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn anew or, where this model has nothing to show, removed; one is of noisy pairs."""
    drawn: dict[int, Sequence[object]] = {}

    def draw(number: int) -> Callable[[object, Sequence[object]], str | None]:
        def figure(_: object, views: Sequence[object]) -> str | None:
            drawn[number] = views
            return None if number == 9 else f"figure {number}"

        return figure

    monkeypatch.setattr(figures, "FIGURES_OF_ONE_MODEL", {n: draw(n) for n in (8, 9, 10)})
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: path.write_text(figure))
    folder = tmp_path / "figures"
    folder.mkdir()
    for number in (8, 9, 10):
        (folder / f"deep-generated-figure{number}.svg").write_text("old")
    run = Run(scale="deep", corpus="generated", row="rela-g", seed=1)
    figures.write_examples(run, made_up_analysis(), ["clean"], ["noisy"], tmp_path)  # type: ignore[list-item]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "deep-generated-figure8.svg": "figure 8",
        "deep-generated-figure10.svg": "figure 10",
    }
    assert drawn == {8: ["clean"], 9: ["clean"], 10: ["noisy"]}


def test_examples_are_listed_once_they_are_drawn(tmp_path: Path) -> None:
    record = made_up_record(scale="deep", corpus="generated")
    evidence = evidence_of(record, results=tmp_path)
    assert example_paths(evidence, 8) == []
    path = tmp_path / "figures" / "deep-generated-figure8.svg"
    path.parent.mkdir()
    path.touch()
    assert example_paths(evidence, 8) == [
        ("generated en-de, deep", "figures/deep-generated-figure8.svg")
    ]
