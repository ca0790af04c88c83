"""One run from its order to its result file, undisturbed, stopped and killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_reproduction import RUN, UPDATES, places_in, small_corpora

from relakit.files.locks import BusyError, locked
from relakit.reproduce import analyses, one_run, runs
from relakit.reproduce.one_run import BUSY, STOPPED, Order, main, make_run
from relakit.reproduce.places import Places
from relakit.reproduce.plan import make_plan
from relakit.reproduce.records import RunRecord, read_record, record_path
from relakit.reproduce.runs import Run
from relakit.train.interrupts import caught_interrupts
from relakit.train.recipe_file import load_recipe
from relakit.train.run import run_training
from relakit.train.run_log import LogFile, UpdateEntry

pytestmark = pytest.mark.xdist_group("one run of the reproduction")


@pytest.fixture(scope="module", autouse=True)
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the small recipe, for processes of their own."""
    folder = tmp_path_factory.mktemp("recipe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "CORPORA", small_corpora(folder))
        yield folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Where a run was made that nobody stopped."""
    places = places_in(tmp_path_factory.mktemp("undisturbed"))
    assert make_run(RUN, places) is not None
    return places


@pytest.fixture(scope="module")
def undisturbed(finished: Places) -> RunRecord:
    """Its result file."""
    return read_record(record_path(finished.results, RUN))


def comparable(record: RunRecord) -> RunRecord:
    """Without what the clock decides."""
    training = record.training.model_copy(update={"seconds": 0.0})
    return record.model_copy(update={"training": training})


def test_result_file(undisturbed: RunRecord, finished: Places) -> None:
    assert undisturbed.run == RUN
    assert undisturbed.training.verdict == "finished"
    assert undisturbed.weights_digest is not None
    assert undisturbed.training.updates == UPDATES
    assert undisturbed.training.averaged_checkpoints == 2
    assert set(undisturbed.scores) == {"valid", "test"}
    assert [point.update for point in undisturbed.curve] == [6, UPDATES]
    assert undisturbed.machine["torch"]
    assert str(finished.runs.parent) not in undisturbed.model_dump_json()


def test_everything_is_analyzed(undisturbed: RunRecord) -> None:
    assert undisturbed.attention is not None
    assert undisturbed.attention.pairs == 60
    assert undisturbed.attention.kind("cross").layers == 2
    study = undisturbed.alignments["generated"]
    for end in ("ignored", "competes"):
        estimate = study.estimates[end].normal.aol  # type: ignore[index]
        assert estimate.low <= estimate.value <= estimate.high
    # A file has six digits; the counts of links are whole.
    assert study.estimates["ignored"].normal.aol.value == pytest.approx(
        study.result.normal.aol, rel=1e-5
    )
    ranking = undisturbed.rankings["planted noise"]
    assert set(ranking.by_label) == {"shuffled", "inserted", "truncated", "language", "copied"}


def test_a_second_call_does_nothing(
    finished: Places, undisturbed: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run_training", "analyze_run"):
        monkeypatch.setattr(one_run, name, None)
    assert make_run(RUN, finished) == undisturbed
    assert [step.state for step in make_plan([RUN], finished).steps] == ["done"]


def test_an_analysis_that_is_missing_is_made_alone(
    finished: Places, undisturbed: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_run, "run_training", None)
    undisturbed.model_copy(update={"alignments": {}}).write(finished.results)
    (step,) = make_plan([RUN], finished).steps
    assert (step.state, step.note) == ("to analyze", "missing: generated")
    assert make_run(RUN, finished) is not None
    assert read_record(record_path(finished.results, RUN)) == undisturbed


def test_an_analysis_that_fails_does_not_lose_the_others(
    finished: Places, undisturbed: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("these links are broken")

    undisturbed.model_copy(update={"alignments": {}, "rankings": {}}).write(finished.results)
    monkeypatch.setattr(analyses._Analyst, "_rank_planted", fail)
    with pytest.raises(ValueError, match="analyzed: planted noise: these links are broken"):
        make_run(RUN, finished)
    written = read_record(record_path(finished.results, RUN))
    assert written == undisturbed.model_copy(update={"rankings": {}})
    monkeypatch.undo()
    assert make_run(RUN, finished) is not None
    assert read_record(record_path(finished.results, RUN)) == undisturbed


def test_a_default_that_has_changed_is_trained_elsewhere(
    undisturbed: RunRecord, tmp_path: Path
) -> None:
    """The folder's name is that of the run before, as defaults are no part of it."""
    places = places_in(tmp_path)
    recipe = RUN.recipe(places.data)
    before = places.folder(RUN, recipe)
    old = places.training_recipe(RUN, recipe).model_dump(mode="json")
    old["training"]["label_smoothing"] = 0.3
    (before / "checkpoints").mkdir(parents=True)
    (before / "recipe.json").write_text(json.dumps(old), encoding="utf-8")
    assert make_run(RUN, places) is not None
    assert comparable(read_record(record_path(places.results, RUN))) == comparable(undisturbed)
    assert sorted(path.name for path in before.iterdir()) == ["checkpoints", "recipe.json"]
    assert (before.with_name(f"{before.name}-2") / "model").is_dir()
    assert [step.state for step in make_plan([RUN], places).steps] == ["done"]


def test_stopped_and_continued(
    undisturbed: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = places_in(tmp_path)
    stop_after(7, monkeypatch)
    assert make_run(RUN, places) is None
    assert not record_path(places.results, RUN).exists()
    (step,) = make_plan([RUN], places).steps
    assert step.state == "to resume"
    monkeypatch.undo()
    assert make_run(RUN, places) is not None
    continued = read_record(record_path(places.results, RUN))
    assert comparable(continued) == comparable(undisturbed)


def test_a_run_that_was_trained_by_hand_is_taken_over(
    undisturbed: RunRecord, tmp_path: Path
) -> None:
    """As under torchrun, in the folder where it is looked for; docs/reproduction.md says how."""
    places = places_in(tmp_path)
    recipe = RUN.recipe(places.data)
    places.prepare(RUN, recipe)
    settings = [
        f"data.prepared={places.prepared(RUN, recipe)}", "model.attention=rela-g",
        f"training.seed={RUN.seed}",
    ]  # fmt: skip
    by_hand = load_recipe(RUN.about_corpus.recipes[RUN.scale], settings)
    run_training(by_hand, places.folder(RUN, recipe))
    log = (places.folder(RUN, recipe) / "log.jsonl").read_bytes()
    assert make_run(RUN, places) is not None
    taken_over = read_record(record_path(places.results, RUN))
    assert comparable(taken_over) == comparable(undisturbed)
    assert (places.folder(RUN, recipe) / "log.jsonl").read_bytes() == log, "nothing is trained"


def stop_after(update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process get SIGTERM after an update."""
    write = LogFile.update

    def write_and_stop(log: LogFile, entry: UpdateEntry) -> None:
        write(log, entry)
        if entry.update == update:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(LogFile, "update", write_and_stop)


# Another process, with the same small corpus.
WORKER = """
import sys
from pathlib import Path
from small_reproduction import small_corpora
from relakit.reproduce import one_run, runs
runs.CORPORA = small_corpora(Path(sys.argv.pop()))
one_run.main()
"""


def start_worker(order: Order, small_corpus: Path) -> "subprocess.Popen[bytes]":
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, order.write(), str(small_corpus)],
        env={**os.environ, "PYTHONPATH": tests, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_killed_and_continued(undisturbed: RunRecord, small_corpus: Path, tmp_path: Path) -> None:
    """kill -9 leaves no time for anything; the result file is the same in the end."""
    places = places_in(tmp_path)
    process = start_worker(Order(RUN, places), small_corpus)
    log = places.folder(RUN, RUN.recipe(places.data)) / "log.jsonl"
    while not log.exists() or log.read_text(encoding="utf-8").count('"kind": "update"') < 5:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    # While it is at work, nobody else may be.
    with pytest.raises(BusyError, match="another process is at work in"):
        make_run(RUN, places)
    assert [step.state for step in make_plan([RUN], places).steps] == ["being made elsewhere"]
    process.kill()
    process.communicate()
    assert make_run(RUN, places) is not None
    continued = read_record(record_path(places.results, RUN))
    assert comparable(continued) == comparable(undisturbed)


def test_a_parent_that_ends_is_noticed_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_run, "SECONDS_BETWEEN_LOOKS", 0.01)
    old = signal.getsignal(signal.SIGHUP)
    one_run._stop_without(os.getppid())
    with caught_interrupts() as interrupts:
        time.sleep(0.1)
        assert interrupts.signal is None
        monkeypatch.setattr(os, "getppid", lambda: 1)
        deadline = time.monotonic() + 20
        while interrupts.signal is None and time.monotonic() < deadline:
            time.sleep(0.01)
    signal.signal(signal.SIGHUP, old)
    assert interrupts.signal == signal.SIGHUP


@pytest.mark.slow
def test_a_run_hangs_up_when_its_parent_is_gone(small_corpus: Path, tmp_path: Path) -> None:
    """Even before it trains: it would keep others from this run for hours."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    places = places_in(tmp_path)
    process = start_worker(Order(RUN, places, parent=gone.pid), small_corpus)
    _, printed = process.communicate(timeout=120)
    # In training it ends with a checkpoint.
    assert process.returncode in (-signal.SIGHUP, STOPPED), printed
    assert not record_path(places.results, RUN).exists()


def test_a_failed_run_has_a_result_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = places_in(tmp_path)
    settings = ("training.learning_rate_factor=1e30", "training.warmup=1")
    row = runs.ALL_ROWS["rela-g"]
    broken = {"relu": type(row)(number=4, label="", attention="rela-g", others=settings)}
    monkeypatch.setattr(runs, "ALL_ROWS", broken)
    run = Run(scale="tiny", corpus="demo", row="relu", seed=1)
    assert make_run(run, places) is not None
    record = read_record(record_path(places.results, run))
    assert (record.training.verdict, record.bleu) == ("failed", None)
    assert "not finite" in record.training.reason
    assert record.attention is None
    assert [step.state for step in make_plan([run], places).steps] == ["done"]


def test_exit_status(finished: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def status(run: Run, places: Places) -> int | str | None:
        monkeypatch.setattr(sys, "argv", ["one_run", Order(run, places).write()])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code

    assert status(RUN, finished) == 0
    elsewhere = Run(scale="tiny", corpus="multi30k-en-de", row="rela-g", seed=1)
    message = status(elsewhere, places_in(tmp_path))
    assert isinstance(message, str)
    assert message.startswith("tiny/multi30k-en-de/rela-g-1: ")
    assert str(tmp_path / "data" / "multi30k") in message
    folder = finished.folder(RUN, RUN.recipe(finished.data))
    with locked(folder):
        assert status(RUN, finished) == BUSY
    monkeypatch.setattr(one_run, "make_run", lambda *_: None)
    assert status(RUN, finished) == STOPPED
