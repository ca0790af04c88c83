"""Scoring as work: it is done by the models that it was described with, or not at all."""

import shutil
from pathlib import Path

import pytest
from clean_models import ModelWriter

from relakit.clean.score import ScoreJob, ScoreSettings
from relakit.clean.score_work import ScoreWork
from relakit.data.parallel_files import ParallelFiles
from relakit.model import description
from relakit.shards.work import WorkDescription


@pytest.fixture
def model(write_model: ModelWriter, tmp_path: Path) -> Path:
    return shutil.copytree(write_model(), tmp_path / "model")


@pytest.fixture
def reverse(write_model: ModelWriter, tmp_path: Path) -> Path:
    return shutil.copytree(write_model(reverse=True), tmp_path / "back")


@pytest.fixture
def work(model: Path, reverse: Path) -> WorkDescription:
    files = ParallelFiles(Path("text.en"), Path("text.de"))
    return ScoreJob(files, ScoreSettings(model=model, reverse=reverse)).job.work


def test_each_model_is_looked_at_once(
    work: WorkDescription, model: Path, reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Path] = []
    original = description.model_digests

    def noted(folder: Path) -> dict[str, str]:
        looked_at.append(folder)
        return original(folder)

    monkeypatch.setattr(description, "model_digests", noted)
    assert isinstance(WorkDescription.from_json(work.to_json()).build(), ScoreWork)
    assert looked_at == [model, reverse]


@pytest.mark.parametrize("replaced", ["model", "back"])
def test_a_model_that_was_replaced_meanwhile(
    replaced: str, work: WorkDescription, write_model: ModelWriter, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / replaced)
    shutil.copytree(write_model(reverse=replaced == "back", seed=1), tmp_path / replaced)
    with pytest.raises(
        ValueError, match=rf"{replaced} on .* is not the model .* has another model\.safetensors\."
    ):
        work.build()


def test_heads_that_were_chosen_meanwhile(work: WorkDescription, model: Path) -> None:
    (model / "alignment.json").write_text("{")
    with pytest.raises(ValueError, match=r"model on .* has another alignment\.json\."):
        work.build()
