"""`relakit reproduce` on the command line; what a run does is tested in tests/reproduce."""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from small_reproduction import places_in, small_corpora
from typer.testing import CliRunner

from relakit.cli.main import app
from relakit.files.locks import locked
from relakit.reproduce import jobs, runs, studies
from relakit.reproduce import plan as plan_module
from relakit.reproduce.jobs import Job, JobsView, Outcome
from relakit.reproduce.one_run import make_run
from relakit.reproduce.places import Places
from relakit.reproduce.plan import Plan, State, Step
from relakit.train.recipe import Recipe


def call(folder: Path, *arguments: str, columns: int = 200) -> tuple[int, str]:
    places = [f"--{name}={folder / name}" for name in ("data", "runs", "results")]
    environment = {"COLUMNS": str(columns)}
    result = CliRunner().invoke(app, ["reproduce", *arguments, *places], env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.output


class NoProcess:
    """Stands for a process that has ended well."""

    returncode = 0


def in_this_process(steps: Sequence[Step], places: Places, *, jobs: int, view: JobsView) -> Outcome:
    """As `run_steps`, without processes of their own."""
    for step in steps:
        job = Job(step, NoProcess())  # type: ignore[arg-type]
        view.started(job)
        view.tick([job])
        make_run(step.run, places)
        view.finished(job, None)
    return Outcome(len(steps), {})


@pytest.fixture
def _one_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stability study is one run on a small corpus."""
    monkeypatch.setattr(runs, "CORPORA", small_corpora(tmp_path))
    need = studies.Need("demo", ("softmax",), 1)
    study = studies._study("stability", "One run", {"tiny": (need,)})
    monkeypatch.setattr(studies, "STUDIES", {**studies.STUDIES, "stability": study})
    monkeypatch.setattr(jobs, "run_steps", in_this_process)


@pytest.mark.usefixtures("_one_small_run")
def test_a_second_call_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = call(tmp_path, "stability")
    assert status == 0, text
    assert "tiny/demo/softmax-1" in text
    assert "1 run: 0 done, 1 to do; about 0.2 core-hours" in text
    assert f"The page: {tmp_path / 'results' / 'README.md'}" in text
    files = contents(tmp_path)
    assert tmp_path / "results" / "reproduction" / "tiny" / "demo" / "softmax-1.json" in files
    monkeypatch.setattr(jobs, "run_steps", None)
    status, text = call(tmp_path, "stability")
    assert status == 0, text
    assert "1 run: 1 done, 0 to do." in text
    assert contents(tmp_path) == files


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    status, text = call(tmp_path, "all", "--dry-run")
    assert status == 0, text
    assert "to train" in text
    # There is no Multi30k here; the reason is given once for each direction.
    assert text.count("runs impossible: there is no folder") == 4
    assert "core-hours" in text
    assert list(tmp_path.iterdir()) == []


def test_runs_that_are_impossible_do_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def note(steps: Sequence[Step], *_: object, **__: object) -> Outcome:
        made.extend(step.run.corpus for step in steps)
        return Outcome(len(steps), {})

    monkeypatch.setattr(jobs, "run_steps", note)
    monkeypatch.setattr(Places, "prepare", lambda *_, **__: None)
    status, text = call(tmp_path, "stability", "figure6")
    assert set(made) == {"demo"}
    assert status == 1
    assert text.count("3 runs impossible: there is no folder") == 2, "before and after"


def test_a_reason_in_brackets_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "[bold]"
    _, text = call(folder, "table1", "--dry-run")
    assert "[bold]" in text


def test_names_are_whole_in_a_narrow_terminal(tmp_path: Path) -> None:
    _, text = call(tmp_path, "stability", "--dry-run", columns=60)
    assert "tiny/demo/feed-forward-dropout-1 " in text


def test_seeds(tmp_path: Path) -> None:
    _, text = call(tmp_path, "stability", "--dry-run", "--seeds", "1")
    assert "tiny/demo/rela-g-1" in text
    assert "tiny/demo/rela-g-2" not in text


def test_jobs_decide_how_long_it_takes(tmp_path: Path) -> None:
    hours = {}
    for number in ("1", "2"):
        _, text = call(tmp_path, "stability", "--dry-run", "--jobs", number)
        hours[number] = float(text.split("core-hours, ")[1].split(" hours here")[0])
    assert hours["2"] == pytest.approx(hours["1"] / 2, abs=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table7"], "ValueError: there is no 'table7' to reproduce; choose from table1,"),
        (["table1", "--scale", "huge"], "ValueError: unknown scale 'huge'; choose one of tiny"),
        (["table3", "--scale", "deep"], "table3 is not made at the scale deep; choose tiny or pap"),
        (["figure7", "table4"], "figure7 is not made at the scale tiny; choose deep"),
        (["table1"], "with the files of Multi30k en-de; docs/reproduction.md says where to get"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path) -> None:
    status, text = call(tmp_path, *arguments)
    assert status == 1
    assert message in text
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_timed_while_a_run_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "deep" / "europarl-en-de" / "rela-g-1-00000000"
    folder.mkdir(parents=True)
    with locked(folder):
        status, text = call(tmp_path, "table2")
    assert status == 1
    assert f"nothing can be timed while a run is at work in {folder}" in text


def test_what_needs_no_run(tmp_path: Path) -> None:
    status, text = call(tmp_path, "table4")
    assert status == 0, text
    page = (tmp_path / "results" / "README.md").read_text(encoding="utf-8")
    assert "23,992,000" in page


@pytest.mark.usefixtures("_one_small_run")
@pytest.mark.parametrize(
    ("outcome", "status", "message"),
    [
        (Outcome(0, {}, int(signal.SIGTERM)), 143, "The same command continues where it was"),
        (Outcome(0, {"tiny/demo/softmax-1": "exit status 1: [full]"}), 1, "exit status 1: [full]"),
    ],
    ids=["stopped", "went wrong"],
)
def test_how_it_ends(
    outcome: Outcome,
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "run_steps", lambda *_, **__: outcome)
    found, text = call(tmp_path, "stability")
    assert (found, message in text) == (status, True), text
    assert (tmp_path / "results" / "README.md").is_file()


@pytest.mark.usefixtures("_one_small_run")
def test_the_page_is_written_after_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_and_break(
        steps: Sequence[Step], places: Places, *, jobs: int, view: JobsView
    ) -> Outcome:
        in_this_process(steps, places, jobs=jobs, view=view)
        raise OSError("the machine goes down")

    monkeypatch.setattr(jobs, "run_steps", run_and_break)
    _, text = call(tmp_path, "stability")
    assert "the machine goes down" in text
    assert (tmp_path / "results" / "README.md").is_file()


@pytest.mark.usefixtures("_one_small_run")
def test_a_page_that_cannot_be_written_does_not_stop_the_runs(tmp_path: Path) -> None:
    stray = tmp_path / "results" / "reproduction" / "tiny" / "demo" / "softmax-9.json"

    def spoil(steps: Sequence[Step], places: Places, *, jobs: int, view: JobsView) -> Outcome:
        stray.parent.mkdir(parents=True)
        stray.write_text("no result", encoding="utf-8")
        job = Job(steps[0], NoProcess())  # type: ignore[arg-type]
        view.started(job)
        view.finished(job, "the disk is full")
        stray.unlink()
        return Outcome(0, {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "run_steps", spoil)
        status, text = call(tmp_path, "stability")
    assert f"The page could not be written: {stray} is not a result" in text
    assert status == 0, text


@pytest.mark.usefixtures("_one_small_run")
def test_what_another_process_makes_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.Run(scale="tiny", corpus="demo", row="softmax", seed=1)
    places = places_in(tmp_path)
    monkeypatch.setattr(jobs, "run_steps", None)
    with locked(places.folder(run, run.recipe(places.data))):
        status, text = call(tmp_path, "stability")
    assert status == 0, text
    assert "1 run: 0 done, 0 to do, 1 being made elsewhere." in text


@pytest.mark.usefixtures("_one_small_run")
def test_a_run_that_is_left_out_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_out(steps: Sequence[Step], places: Places, *, jobs: int, view: JobsView) -> Outcome:
        job = Job(steps[0], NoProcess())  # type: ignore[arg-type]
        view.started(job)
        view.left_out(job)
        return Outcome(0, {})

    monkeypatch.setattr(jobs, "run_steps", leave_out)
    status, text = call(tmp_path, "stability")
    assert status == 0, text
    assert "tiny/demo/softmax-1: being made elsewhere" in text


def test_a_corpus_that_cannot_be_prepared_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the first corpus can be; a run to analyze needs none."""
    asked: list[str] = []
    made: list[str] = []

    def prepare(places: Places, run: runs.Run, *_: object, **__: object) -> None:
        asked.append(run.corpus)
        if run.corpus == "multi30k-en-de":
            raise ValueError("line 7 is empty")

    def note(steps: Sequence[Step], *_: object, **__: object) -> Outcome:
        made.extend(step.run.name for step in steps)
        return Outcome(len(steps), {})

    def plan(*_: object) -> Plan:
        def step(state: State, corpus: str, seed: int) -> Step:
            run = runs.Run(scale="tiny", corpus=corpus, row="rela-g", seed=seed)
            return Step(run=run, state=state, recipe=recipe, folder=tmp_path)

        recipe = Recipe.model_validate({"data": {"folder": "x"}, "training": {"updates": 1}})
        broken = "multi30k-en-de"
        return Plan(
            (
                step("to train", broken, 1),
                step("to resume", broken, 2),
                step("to analyze", broken, 3),
                step("to train", "multi30k-de-en", 1),
            )
        )

    monkeypatch.setattr(Places, "prepare", prepare)
    monkeypatch.setattr(jobs, "run_steps", note)
    monkeypatch.setattr(plan_module, "make_plan", plan)
    status, text = call(tmp_path, "table1")
    assert asked == ["multi30k-en-de", "multi30k-de-en"]
    assert made == ["tiny/multi30k-en-de/rela-g-3", "tiny/multi30k-de-en/rela-g-1"]
    assert status == 1
    reason = "its corpus could not be prepared: line 7 is empty"
    assert [f"tiny/multi30k-en-de/rela-g-{seed}: {reason}" in text for seed in (1, 2, 3)] == [
        True, True, False,
    ]  # fmt: skip
