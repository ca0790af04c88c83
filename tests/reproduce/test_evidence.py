"""Numbers of all seeds, read from records."""

import pytest
from made_up_records import (
    evidence_of,
    made_up_alignment,
    made_up_analysis,
    made_up_record,
)

from relakit.reproduce.evidence import (
    Setting,
    bleu,
    mean_diversity,
    mean_null_rate,
    mean_sparsity,
)

TINY = Setting("tiny", "multi30k-en-de")


def test_settings_are_sorted_by_size() -> None:
    evidence = evidence_of(
        made_up_record(scale="deep", corpus="generated"),
        made_up_record(scale="deep"),
        made_up_record(corpus="multi30k-en-fr"),
        made_up_record(),
    )
    assert [setting.label for setting in evidence.settings()] == [
        "Multi30k en-de, tiny", "Multi30k en-fr, tiny", "Multi30k en-de, deep",
        "generated en-de, deep",
    ]  # fmt: skip


def test_the_demo_is_no_evidence_for_the_paper() -> None:
    assert evidence_of(made_up_record(corpus="demo")).settings() == []


def test_seeds_are_those_that_have_the_number() -> None:
    evidence = evidence_of(
        made_up_record(seed=2, bleu=32.0),
        made_up_record(seed=1, bleu=31.0),
        made_up_record(seed=3, bleu=None),
        made_up_record("softmax", bleu=None),
    )
    seeds = evidence.seeds(TINY, "rela-g", bleu)
    assert seeds is not None
    assert seeds.values == (31.0, 32.0)
    assert evidence.failed(TINY, "rela-g") == 1
    assert evidence.seeds(TINY, "softmax", bleu) is None
    assert evidence.seeds(TINY, "entmax15", bleu) is None


def test_means_over_layers_and_heads() -> None:
    record = made_up_record(
        attention=made_up_analysis(
            sparsity={"cross": [0.1, 0.2, 0.6]},
            null_rate={"decoder": [0.0, 0.0, 0.3]},
            diversity={"1": 0.7, "0.5": 0.6},
        )
    )
    assert mean_sparsity("cross")(record) == pytest.approx(0.3)
    assert mean_null_rate("decoder")(record) == pytest.approx(0.1)
    assert mean_diversity("encoder", "0.5")(record) == pytest.approx(0.6)
    assert mean_diversity("encoder", "0.1")(record) is None


def test_means_without_an_analysis() -> None:
    for measure in (mean_sparsity("cross"), mean_null_rate("cross"), mean_diversity("cross", "1")):
        assert measure(made_up_record()) is None


def test_alignments_are_those_with_the_usual_links() -> None:
    studies = {
        ("rela-g", 1): made_up_alignment(0.5),
        ("rela-g", 2): made_up_alignment(0.5, digest="new"),
        ("softmax", 1): made_up_alignment(0.5, digest="other"),
        ("softmax", 2): made_up_alignment(0.5, sure=99),
        ("relu", 1): made_up_alignment(0.5, digest="new"),
    }
    records = [made_up_record(*run, alignments={"RWTH": one}) for run, one in studies.items()]
    evidence = evidence_of(*records, made_up_record("rela-i", alignments={}))
    counted = evidence.alignments(TINY, "RWTH")
    assert [(run.row, run.seed) for run in counted] == [("rela-g", 1), ("rela-g", 2), ("relu", 1)]
    left_out = evidence.with_other_links(TINY, "RWTH")
    assert [(run.row, run.seed) for run in left_out] == [("softmax", 1), ("softmax", 2)]
    assert evidence.gold_sets(TINY) == ["RWTH"]
    assert evidence.alignments(TINY, "eflomal") == {}
