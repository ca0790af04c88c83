"""Result files: one for each finished run, small enough for a repository. No torch here."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relakit.analysis.alignment_bootstrap import AlignmentEstimates
from relakit.analysis.links import EndWeight
from relakit.analysis.ranking import QualityRanking
from relakit.analysis.results import AlignmentResult, ModelAnalysis
from relakit.data.setting_errors import explain_document
from relakit.files.writing import write_whole
from relakit.reproduce.corpora import Scale
from relakit.reproduce.runs import Run

RECORDS: Final = "reproduction"
"""The folder of all runs' result files, in the results folder."""
SIGNIFICANT_DIGITS: Final = 6


class _Part(BaseModel):
    """Frozen, and strict about what it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunScores(_Part):
    """What was measured on one split, with the final model."""

    loss: float | None
    """Negative log-likelihood per target token, in nats; None if it is not finite"""
    bleu: float | None = None
    bleu_signature: str | None = None


class CurvePoint(_Part):
    """A validation during training."""

    update: int
    training_loss: float | None
    loss: float | None
    bleu: float | None = None


class TrainingRecord(_Part):
    """How training went."""

    verdict: Literal["finished", "failed"]
    reason: str
    """Why it ended, in words"""
    updates: int
    epochs: float
    seconds: float
    """Training alone, on the machine of `RunRecord.machine`, alongside other runs"""
    target_tokens: int
    parameters: int
    averaged_checkpoints: int
    precision: str


class AlignmentStudy(_Part):
    """How well the cross-attention aligns the pairs of one gold set."""

    result: AlignmentResult
    """For every layer and head; weight on the end of the sentence is ignored"""
    estimates: dict[EndWeight, AlignmentEstimates]
    """AoL, AoH and the best head with intervals, for each treatment of that weight"""
    gold_digest: str | None = None
    """Digest of the pairs with their gold links; None in files from before it was kept"""

    @property
    def sure_links(self) -> int:
        """How many sure links the gold set has."""
        return self.result.normal.layers[0].sure

    def has_gold_of(self, other: "AlignmentStudy") -> bool:
        """Whether both were compared with the same links, as far as the files tell."""
        if self.gold_digest is not None and other.gold_digest is not None:
            return self.gold_digest == other.gold_digest
        return (self.result.pairs, self.sure_links) == (other.result.pairs, other.sure_links)


class RunRecord(_Part):
    """Everything that is kept of a run. The page is made from these records."""

    format: Literal["relakit run"] = "relakit run"
    version: Literal[1] = 1
    scale: Scale
    corpus: str
    row: str
    seed: int
    recipe: dict[str, Any]
    machine: dict[str, str | None]
    """Processor, system, versions"""
    training: TrainingRecord
    scores: dict[str, RunScores] = Field(default_factory=dict)
    """By split"""
    curve: tuple[CurvePoint, ...] = ()
    attention: ModelAnalysis | None = None
    """On the test set: sparsity, null rates, diversity"""
    alignments: dict[str, AlignmentStudy] = Field(default_factory=dict)
    """By gold set"""
    rankings: dict[str, QualityRanking] = Field(default_factory=dict)
    """By set of labelled pairs"""
    weights_digest: str | None = None
    """For the trained model; None if training failed, and in files from before it was kept"""

    @property
    def has_failed(self) -> bool:
        """Whether training failed."""
        return self.training.verdict == "failed"

    @property
    def run(self) -> Run:
        return Run(scale=self.scale, corpus=self.corpus, row=self.row, seed=self.seed)

    @property
    def test(self) -> RunScores | None:
        """The scores of the test set, if the run got that far."""
        return self.scores.get("test")

    @property
    def bleu(self) -> float | None:
        """BLEU on the test set; None for a run that failed."""
        return None if self.test is None else self.test.bleu

    def write(self, results: Path) -> Path:
        """Write the run's file, whole or not at all; returns its path."""
        path = record_path(results, self.run)
        # Settings are compared later, to the last digit.
        rounded = {**_rounded(self.model_dump(mode="json")), "recipe": self.recipe}
        text = type(self).model_validate(rounded).model_dump_json()
        write_whole(path, f"{text}\n".encode())
        return path


def _rounded(value: Any) -> Any:
    """Round measured numbers to six digits, which is more precise than any of them is."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def record_path(results: Path, run: Run) -> Path:
    """Where a run's result file is."""
    return results / RECORDS / f"{run.name}.json"


def read_record(path: Path) -> RunRecord:
    """Read a result file.

    Raises:
        ValueError: it is not a result file; names the file and says why.
    """
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(
            f"{path} is not a result of relakit reproduce: {explain_document(error)}; remove it to "
            "have the run scored and analyzed again"
        ) from None


def read_records(results: Path) -> "Records":
    """All result files in a folder of results."""
    paths = sorted((results / RECORDS).glob("*/*/*.json"))
    return Records(read_record(path) for path in paths)


class Records(Mapping[Run, RunRecord]):
    """Result files by run."""

    def __init__(self, records: Iterable[RunRecord]) -> None:
        self._by_run = {record.run: record for record in records}

    def __getitem__(self, run: Run) -> RunRecord:
        return self._by_run[run]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._by_run)

    def __len__(self) -> int:
        return len(self._by_run)

    def of(self, scale: Scale, corpus: str, row: str) -> list[RunRecord]:
        """The records of all seeds of a row, in the order of seeds."""
        runs = sorted(r for r in self if (r.scale, r.corpus, r.row) == (scale, corpus, row))
        return [self[run] for run in runs]
