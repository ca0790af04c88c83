"""Measure training, decoding, scoring and aligning: all contenders get ready, then take turns."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from relakit.bench.rounds import CaseRounds, Field, FixedRounds, take_turns
from relakit.threads import limited_threads
from runs import Save, Tell
from toolkits.decoding_turns import decoding_field
from toolkits.pair_report import PairReport
from toolkits.pair_turns import pair_field
from toolkits.peers import PeerPlace
from toolkits.report import SpeedReport
from toolkits.settings import DecodingSettings, TrainingSettings
from toolkits.training_turns import CASE, training_field


def measure_training(
    report: SpeedReport,
    settings: TrainingSettings,
    place: PeerPlace,
    *,
    save: Save = lambda: None,
    tell: Tell = lambda text: None,
) -> None:
    """Measure what a report still lacks.

    Args:
        report: empty, or with the rounds of an earlier run.
        settings: the report's settings.
        place: where the peers are.
        save: called when the report has grown.
        tell: called with what is being done.
    """
    with _workplace(settings.threads) as folder:
        tell("preparing the corpus, the models and the peers")
        with training_field(settings, place, folder) as field:
            _share_notes(report, field)
            [case] = _cases(report, [CASE])
            limit = FixedRounds(settings.rounds)
            take_turns(field, case, limit, after_round=save, tell=tell)


def measure_decoding(
    report: SpeedReport,
    settings: DecodingSettings,
    place: PeerPlace,
    *,
    save: Save = lambda: None,
    tell: Tell = lambda text: None,
) -> None:
    """Measure what a report still lacks; arguments as for `measure_training`.

    The groups by source length are for relakit's own attentions, as in the paper's Figure 2.
    """
    with _workplace(settings.threads) as folder:
        tell("preparing the corpus, the models and the peers")
        with decoding_field(settings, place, folder) as (field, work):
            _share_notes(report, field)
            report.source_lengths = {c.name: c.source_length for c in work if c.is_group}
            own = {system.label for system in settings.own_systems()}
            for case in _cases(report, [case.name for case in work]):
                is_group = case.case in report.source_lengths
                take_turns(
                    field,
                    case,
                    FixedRounds(settings.rounds),
                    only=own.__contains__ if is_group else lambda label: True,
                    after_round=save,
                    tell=tell,
                )


def measure_pairs(
    report: PairReport,
    place: PeerPlace,
    eflomal: Path | None,
    *,
    save: Save = lambda: None,
    tell: Tell = lambda text: None,
) -> None:
    """Measure what a report still lacks; as `measure_training`, but with eflomal's program."""
    settings = report.settings
    with _workplace(settings.threads) as folder:
        tell("preparing the pairs, the models and the peers")
        with pair_field(settings, place, eflomal, folder) as field:
            _share_notes(report, field)
            [case] = _cases(report, [f"{settings.pairs:,} pairs"])
            take_turns(field, case, FixedRounds(settings.rounds), after_round=save, tell=tell)


def _cases(report: SpeedReport | PairReport, wanted: Sequence[str]) -> list[CaseRounds]:
    """The report's cases in the order of ``wanted``; missing ones are created."""
    measured = {case.case: case for case in report.cases}
    report.cases[:] = [measured.get(name, CaseRounds(name)) for name in wanted]
    return report.cases


def _share_notes(report: SpeedReport | PairReport, field: Field) -> None:
    """Make the report show at once what becomes known about a contender during the run."""
    report.notes, report.about = field.notes, field.about


@contextmanager
def _workplace(threads: int) -> Iterator[Path]:
    """A temporary folder, and a limit on threads, for the duration of a run."""
    with (
        limited_threads(threads),
        tempfile.TemporaryDirectory(prefix="relakit-bench-") as folder,
    ):
        yield Path(folder)
