"""Tables: every number once, layers and heads from 1."""

import csv
from pathlib import Path

import pytest
from report_page import Sample

from relakit.report import write_tables


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "new"
    written = write_tables(sample.analyses, folder)
    assert sorted(written) == sorted(folder.iterdir())
    return folder


@pytest.mark.parametrize("name", ["sparsity", "null_rate", "first_sink", "end_sink"])
def test_numbers_of_heads(name: str, folder: Path, sample: Sample) -> None:
    expected = {
        (a.name, kind.kind, str(layer + 1), str(head + 1)): "" if value is None else repr(value)
        for a in sample.analyses
        for kind in a.kinds
        for layer, heads in enumerate(getattr(kind, name) or ())
        for head, value in enumerate(heads)
    }
    rows = read(folder / f"{name}.csv")
    found = {(r["model"], r["kind"], r["layer"], r["head"]): r["value"] for r in rows}
    assert found == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize(
    "name", ["layer_null_rate", "null_rate_variance", "output_rms", "closed_gates"]
)
def test_numbers_of_layers(name: str, folder: Path, sample: Sample) -> None:
    """Softmax has no gates, and so no rows."""
    expected = []
    for analysis in sample.analyses:
        for kind in analysis.kinds:
            values = kind.null_variance() if "variance" in name else getattr(kind, name)
            for layer, value in enumerate(values or ()):
                expected.append([analysis.name, kind.kind, str(layer + 1), repr(value)])
    rows = read(folder / f"{name}.csv")
    assert [list(row.values()) for row in rows] == expected
    models = {row["model"] for row in rows}
    assert len(models) == (1 if name == "closed_gates" else 2)


def test_tables_of_the_paper(folder: Path, sample: Sample) -> None:
    rela = sample.analyses[0]
    assert rela.alignment is not None
    first = read(folder / "table_5_alignment.csv")[0]
    assert (first["model"], first["reading"]) == ("ReLA-g", "normal")
    assert float(first["aol"]) == rela.alignment.normal.aol
    assert float(first["aoh"]) == rela.alignment.normal.aoh
    rows = read(folder / "table_6_diversity.csv")
    cross = {r["temperature"]: float(r["value"]) for r in rows
             if (r["model"], r["kind"]) == ("ReLA-g", "cross")}  # fmt: skip
    expected = rela.kind("cross").diversity
    assert cross == {t: pytest.approx(sum(v) / 3) for t, v in expected.items()}  # type: ignore[arg-type]
    flops = read(folder / "table_4_flops.csv")
    assert (flops[0]["length"], flops[0]["softmax"]) == ("100", "239200")


def test_alignment_of_heads_and_layers(folder: Path, sample: Sample) -> None:
    rows = read(folder / "alignment.csv")
    assert len(rows) == 2 * 2 * 3 * (4 + 1)
    rela = sample.analyses[0].alignment
    assert rela is not None
    by_place = {(r["model"], r["reading"], r["layer"], r["head"]): r for r in rows}
    row = by_place["ReLA-g", "shifted", "2", "3"]
    score = rela.shifted.heads[1][2]
    assert [float(row[name]) for name in ("aer", "precision", "recall")] == [
        score.aer, score.precision, score.recall,
    ]  # fmt: skip
    mean = by_place["ReLA-g", "shifted", "2", "mean"]
    assert float(mean["aer"]) == rela.shifted.layers[1].aer


def test_shuffled_targets_and_classes(folder: Path, sample: Sample) -> None:
    gap = read(folder / "shuffled_gap.csv")[1]
    shuffled = sample.analyses[0].shuffled
    assert shuffled is not None
    assert (gap["layer"], float(gap["low"])) == ("2", shuffled.cross_gap[1].low)
    assert {r["kind"] for r in read(folder / "shuffled_null_rate.csv")} == {"decoder", "cross"}
    classes = sample.analyses[0].classes
    row = read(folder / "null_rate_by_class.csv")[1]
    assert (row["class"], int(row["count"])) == (classes.classes[1], classes.counts[1])
    assert float(row["value"]) == classes.null_rate[0][0][1]


def test_tables_without_rows_are_left_out(sample: Sample, tmp_path: Path) -> None:
    plain = sample.analyses[0].model_copy(update={"alignment": None, "shuffled": None})
    names = {path.stem for path in write_tables([plain], tmp_path)}
    assert not names & {"alignment", "table_5_alignment", "shuffled_gap", "shuffled_null_rate"}
    assert "null_rate" in names
