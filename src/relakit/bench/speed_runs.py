"""Runs of `relakit bench train` and `relakit bench decode`, from settings to a report."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from relakit.bench.decoding_speed import decoding_field
from relakit.bench.peers import PeerPlace
from relakit.bench.speed_results import SpeedReport
from relakit.bench.speed_settings import DecodingSettings, TrainingSettings
from relakit.bench.training_speed import CASE, training_field
from relakit.bench.turns import CaseTurns, Field, take_turns

Save = Callable[[], None]
Tell = Callable[[str], None]


def measure_training(
    report: SpeedReport,
    settings: TrainingSettings,
    place: PeerPlace,
    *,
    save: Save = lambda: None,
    tell: Tell = lambda text: None,
) -> None:
    """Add to a report what it lacks.

    Args:
        report: empty, or with the rounds of an earlier run.
        settings: the report's.
        place: where the peers are.
        save: called when the report has grown.
        tell: gets what is being done.
    """
    with _workplace(settings.threads) as folder:
        tell("preparing the corpus, the models and the peers")
        with training_field(settings, place, folder) as field:
            _share_notes(report, field)
            [case] = _cases(report, [CaseTurns(CASE)])
            take_turns(field, case, rounds=settings.rounds, after_round=save, tell=tell)


def measure_decoding(
    report: SpeedReport,
    settings: DecodingSettings,
    place: PeerPlace,
    *,
    save: Save = lambda: None,
    tell: Tell = lambda text: None,
) -> None:
    """Add to a report what it lacks; arguments as for `measure_training`.

    The groups by source length are for the toolkit's own contenders, as in the paper's Figure 2.
    """
    with _workplace(settings.threads) as folder:
        tell("preparing the corpus, the models and the peers")
        with decoding_field(settings, place, folder) as (field, work):
            _share_notes(report, field)
            own = {contender.label for contender in settings.own_contenders()}
            wanted = [CaseTurns(c.name, c.source_length if c.is_group else None) for c in work]
            for case, results in zip(work, _cases(report, wanted), strict=True):
                take_turns(
                    field,
                    results,
                    rounds=settings.rounds,
                    only=own.__contains__ if case.is_group else lambda label: True,
                    after_round=save,
                    tell=tell,
                )


def _cases(report: SpeedReport, wanted: Sequence[CaseTurns]) -> list[CaseTurns]:
    """The report's cases, where it has none as wanted."""
    measured = {case.case: case for case in report.cases}
    report.cases[:] = [measured.get(case.case, case) for case in wanted]
    return report.cases


def _share_notes(report: SpeedReport, field: Field) -> None:
    """What becomes known of a contender during the run belongs to the report at once."""
    report.notes, report.about = field.notes, field.about


@contextmanager
def _workplace(threads: int) -> Iterator[Path]:
    """A folder for the time of a run, and the number of threads for as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with tempfile.TemporaryDirectory(prefix="relakit-bench-") as folder:
            yield Path(folder)
    finally:
        torch.set_num_threads(before)
