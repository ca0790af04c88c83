"""benchmarks/tasks.py: the grid, its result files, its page."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

import tasks
from relakit.bench.machine import Machine
from task_grid import training_runs
from task_grid.page import make_page
from task_grid.plan import (
    ATTENTIONS,
    BRIEFLY_TUNED,
    FINE_TUNED,
    Choice,
    TaskResult,
    TaskRun,
    read_result,
    write_result,
)

MACHINE = Machine(
    cpu="a processor",
    system="a system",
    relakit="0",
    torch="0",
    torch_instructions="AVX2",
    rela_instructions="avx2",
)


def fake_result(run: TaskRun) -> TaskResult:
    """Numbers that tell runs apart: the seed decides the loss."""
    loss = 3.0 + run.seed / 10
    numbers = {"loss": loss, "zeros": 0.5, "nulls": 0.125, "sink": 0.25}
    curve = {}
    if run.task == "language-model":
        numbers["bits_per_byte"] = loss / 2
    if run.task == "classifier":
        numbers |= {"accuracy": 0.7, "most_frequent_label": 0.2, "bag_of_words": 0.9}
    if run.base_steps is not None:
        curve = {"0": loss + 1, "10": loss + 0.5}
    return TaskResult(
        run=run, data="fake", machine=MACHINE, cpu_seconds=60.0, numbers=numbers, curve=curve
    )


def all_runs(choice: Choice) -> list[TaskRun]:
    return [run for wave in choice.waves() for run in wave]


def test_the_grid_has_every_run_once() -> None:
    runs = all_runs(Choice())
    assert len({run.name for run in runs}) == len(runs)
    assert len(runs) == 3 * (2 * len(ATTENTIONS) + 1 + len(FINE_TUNED) + len(BRIEFLY_TUNED))


def test_a_base_comes_in_an_earlier_wave_than_its_fine_tuning() -> None:
    before: set[int] = set()
    for wave in Choice().waves():
        for run in wave:
            assert run.base_steps is None or run.seed in before
        before |= {run.seed for run in wave if run.start == "base"}
    assert before == {1, 2, 3}


def test_the_page_has_means_and_deviations() -> None:
    results = [fake_result(run) for run in all_runs(Choice())]
    speed = [
        {"task": task, "attention": "rela-g", "ratio": 1.25, "ratio_lower": 1.2, "ratio_upper": 1.3}
        for task in ("language-model", "classifier")
    ]
    page = make_page(results, speed)
    assert (
        "| rela-g | 3 | 3.200 ± 0.100 | 1.600 ± 0.050 | 50.0 ± 0.0 | 12.5 ± 0.0 | 25.0 ± 0.0 "
        "| 1.25 (1.20 to 1.30) |"
    ) in page
    assert "| softmax | 3 | 70.0 ± 0.0 | 3.200 ± 0.100 |" in page
    assert "bag of words 90.0%" in page
    assert "| rela-i | calibrated | 3 | 4.200 ± 0.100 | 3.700 ± 0.100 |" in page
    assert "trained with softmax for 600 updates, has 3.200 ± 0.100" in page
    assert f"{len(results)} runs on a processor, {len(results)} minutes" in page


def test_a_page_without_results_says_so() -> None:
    assert make_page([], []).count("Not run yet.") == 3


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    result = fake_result(all_runs(Choice())[-1])
    write_result(tmp_path, result)
    (path,) = tmp_path.iterdir()
    assert read_result(path) == result


@pytest.fixture
def run_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command, with small texts and two updates; results go to ``tmp_path/tasks``."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    words = "the old man sees a small dog and his cat in a garden far away".split()  # noqa: SIM905
    texts = [" ".join(words[n % 7 :] + words[: n % 11]) + f" {n}" for n in range(120)]
    (tmp_path / "text.txt").write_text("\n\n\n".join(texts * 3))
    lines = [f"{'ab'[n % 2]}\t{text}\n" for n, text in enumerate(texts)]
    (tmp_path / "labelled.tsv").write_text("".join(lines))

    def run(*arguments: str) -> Result:
        places = [
            *("--text", tmp_path / "text.txt", "--labelled", tmp_path / "labelled.tsv"),
            *("--out", tmp_path / "tasks", "--models", tmp_path / "models"),
        ]
        given = [*map(str, places), "--attention", "softmax,rela-g", "--seeds", "1", *arguments]
        return CliRunner().invoke(tasks.app, given)

    return run


def test_runs_are_made_once(
    run_tasks: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ("--task", "language-model,classifier", "--steps", "2")
    first = run_tasks(*small)
    assert first.exit_code == 0, first.output
    names = sorted(path.name for path in (tmp_path / "tasks").iterdir())
    assert names == [
        f"{task}-{attention}-seed1.json"
        for task in ("classifier", "language-model")
        for attention in ("rela-g", "softmax")
    ]
    content = json.loads((tmp_path / "tasks" / names[0]).read_text())
    assert content["run"]["steps"] == 2
    assert 0 < content["numbers"]["zeros"] < 1
    page = (tmp_path / "tasks.md").read_text()
    assert "| rela-g | 1 |" in page

    def fail(*_: Any) -> None:
        raise AssertionError("nothing should run")

    monkeypatch.setattr(training_runs, "run_task", fail)
    assert "0 runs to do" in run_tasks(*small).output
    assert (tmp_path / "tasks.md").read_text() == page
    other = run_tasks("--task", "language-model", "--steps", "3")
    assert "was run with steps = 2, now it is 3; remove the file" in str(other.exception)


def test_several_jobs(
    run_tasks: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In threads: processes would take seconds to import torch."""
    monkeypatch.setattr(
        tasks, "ProcessPoolExecutor", lambda jobs, mp_context: ThreadPoolExecutor(jobs)
    )
    monkeypatch.setattr(training_runs, "run_task", lambda run, places: fake_result(run))
    assert run_tasks("--jobs", "2").exit_code == 0
    assert len(list((tmp_path / "tasks").iterdir())) == 2 + 2 + 1 + 3 + 3


def test_fine_tuning_trains_its_base_once(
    run_tasks: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "RELAKIT_REQUIRE_HF" not in os.environ:
        pytest.importorskip("transformers", reason="the extra relakit[hf] is not installed")
    import finetune_converted

    bases = []
    train_base = finetune_converted.train_base

    def counted(*arguments: Any) -> Any:
        bases.append(arguments)
        return train_base(*arguments)

    monkeypatch.setattr(finetune_converted, "train_base", counted)
    result = run_tasks("--task", "fine-tuning", "--steps", "1")
    assert result.exit_code == 0, result.output
    assert len(bases) == 1
    curves = {
        path.name: json.loads(path.read_text())["curve"] for path in (tmp_path / "tasks").iterdir()
    }
    base = json.loads((tmp_path / "tasks" / "fine-tuning-softmax-base-seed1.json").read_text())
    softmax = curves["fine-tuning-softmax-as-converted-seed1.json"]
    assert list(softmax) == ["0", "1"]
    assert softmax["0"] == pytest.approx(base["numbers"]["loss"], rel=1e-5)
    assert "fine-tuning-rela-g-calibrated-seed1.json" in curves


def test_speed_is_a_ratio_to_softmax(run_tasks: Callable[..., Result], tmp_path: Path) -> None:
    result = run_tasks("--speed", "--rounds", "1", "--task", "classifier")
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "tasks" / "speed.json").read_text())["results"]
    assert [row["attention"] for row in rows] == ["softmax", "rela-g"]
    assert rows[0]["ratio"] == 1.0
    assert rows[1]["ratio"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "translation"), "--task: there is no 'translation'; choose from language-m"),
        (("--attention", "softmx"), "--attention: there is no 'softmx'; choose from softmax"),
        (("--speed", "--attention", "rela-g"), "--speed compares with softmax"),
        (("--seeds", "one"), "--seeds must be numbers"),
    ],
)
def test_bad_options(
    arguments: tuple[str, ...], message: str, run_tasks: Callable[..., Result]
) -> None:
    assert message in str(run_tasks(*arguments).exception)


def test_a_file_that_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "language-model-softmax-seed1.json"
    path.write_text('{"format": 1}')
    with pytest.raises(ValueError, match=r"seed1\.json is not the result of a task"):
        read_result(path)


def test_models_start_from_the_seed(tmp_path: Path) -> None:
    """The same weights for the same seed, but for what the attention adds."""
    path = tmp_path / "text.txt"
    path.write_text("\n\n\n".join(f"text number {n}" for n in range(100)))
    places = tasks.Places(models=tmp_path, text=(path,))
    first, again = (
        training_runs.model_and_loss("language-model", name, 1, places)[0]
        for name in ("softmax", "softmax")
    )
    assert all(map(torch.equal, first.parameters(), again.parameters()))
