"""Shards on a Ray cluster; what needs Ray itself is skipped where it is not installed."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from shard_works import expected, shouting, write_files

from relakit.data.parallel_files import read_numbered_pairs
from relakit.shards.cutting import cut_into_shards
from relakit.shards.engines import ray as engine_module
from relakit.shards.engines.child import ChildProcess
from relakit.shards.engines.ray import RayCluster
from relakit.shards.run import Job, run_job
from relakit.shards.work import WorkDescription

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def run(work: WorkDescription, folder: Path, patience: float = 120) -> bytes:
    """What all shards give together; each is done once."""
    told: list[int] = []
    shards = cut_into_shards(read_numbered_pairs(write_files(folder, 60)), 10)
    done = list(RayCluster(2, patience=patience).run(work, shards, "line", told.append))
    assert sorted(index for index, _ in done) == list(range(6))
    assert sum(told) == 60
    return b"".join(result.content for _, result in sorted(done, key=lambda entry: entry[0]))


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"install it with pip install 'relakit\[ray\]'"):
        RayCluster(2)


@pytest.mark.parametrize(
    ("workers", "patience", "problem"),
    [
        (0, 1.0, "--workers must be at least 1, got 0"),
        (1, 0.0, "--timeout must be above 0 and at most 1,000,000, got 0"),
        (1, float("inf"), "--timeout must be above 0 and at most 1,000,000, got inf"),
    ],
)
def test_impossible_settings(
    workers: int, patience: float, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda name: name)
    with pytest.raises(ValueError, match=problem):
        RayCluster(workers, patience=patience)


class ImpatientOnce:
    """Loses patience with the first driver that hangs, as soon as it does, and with no other."""

    def __init__(self, times: Path) -> None:
        self.times = times
        self.is_patient = False

    def __call__(self, driver: ChildProcess) -> bool:
        while True:
            # What it had to tell, it has told before it hangs.
            hangs = not self.is_patient and any(self.times.iterdir())
            if driver.connection.poll(0.02):
                return True
            if hangs:
                self.is_patient = True
                return False


def members(group: int) -> list[str]:
    """Processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state not in "ZX":
                found.append(path.parent.name)
    return found


class TestWithoutRay:
    """A driver that misbehaves: nothing is lost, and nothing is done twice."""

    @pytest.fixture(autouse=True)
    def driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine_module, "find_spec", lambda name: name)
        monkeypatch.setattr(engine_module, "DRIVER", "fake_ray_driver")

    @pytest.fixture
    def times(self, tmp_path: Path) -> Path:
        folder = tmp_path / "times"
        folder.mkdir()
        return folder

    @pytest.mark.parametrize("how", ["hang", "die", "crash", "fail"])
    def test_another_one_gets_what_is_missing(
        self, how: str, times: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if how == "hang":
            monkeypatch.setattr(RayCluster, "_has_answered", ImpatientOnce(times))
        work = shouting(driver=how, times=[str(times), 1])
        assert run(work, tmp_path) == expected(60)
        assert len(list(times.iterdir())) == 1
        assert (tmp_path / "parted").exists()

    @pytest.mark.parametrize(
        ("how", "problem"),
        [
            ("die", "lines 31 to 40: the driver of the Ray cluster died by SIGKILL, 3 times"),
            (
                "crash",
                "lines 31 to 40: the driver of the Ray cluster died by exit code 3: no space left "
                "on device, 3 times",
            ),
            ("fail", "lines 31 to 40: the Ray cluster failed: no actors, 3 times; see --timeout"),
        ],
    )
    def test_three_times_are_enough(
        self, how: str, problem: str, times: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(ValueError, match=problem):
            run(shouting(driver=how, times=[str(times), 9]), tmp_path)

    def test_what_ray_says_of_itself_is_not_shown(
        self, times: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        run(shouting(driver="crash", times=[str(times), 1]), tmp_path)
        assert capfd.readouterr().err == ""

    def test_nothing_is_left_of_a_driver(
        self, times: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        groups: list[int] = []
        stop = ChildProcess.stop

        def stop_and_note(self: ChildProcess) -> str:
            groups.append(self.process.pid)
            return stop(self)

        monkeypatch.setattr(ChildProcess, "stop", stop_and_note)
        run(shouting(driver="crash", times=[str(times), 1]), tmp_path)
        assert len(set(groups)) == 2
        for group in groups:
            assert not members(group)

    def test_a_cluster_that_hangs(self, times: Path, tmp_path: Path) -> None:
        work = shouting(driver="hang", times=[str(times), 9])
        with pytest.raises(ValueError, match=r"gave nothing back for 0\.01 s, 3 times"):
            run(work, tmp_path, 0.01)  # less than a process takes to start


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests: their drivers find it by its address."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where its actors find the works
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        patch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
        yield
    ray.shutdown()


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
class TestOnACluster:
    def test_the_same_as_elsewhere(self, tmp_path: Path) -> None:
        assert run(shouting(), tmp_path) == expected(60)

    def test_an_actor_that_is_killed(self, tmp_path: Path) -> None:
        graves = tmp_path / "graves"
        graves.mkdir()
        work = shouting(deadly="s25", graves=[str(graves), 2])
        assert run(work, tmp_path) == expected(60)
        assert len(list(graves.iterdir())) == 2

    def test_errors_come_from_actors(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"^line 25 is refused$"):
            run(shouting(refused="s25"), tmp_path)

    def test_into_a_file(self, tmp_path: Path) -> None:
        job = Job(shouting(), write_files(tmp_path, 57), shard_pairs=10)
        summary = run_job(job, tmp_path / "out", RayCluster(2, patience=120))
        assert (tmp_path / "out").read_bytes() == expected(57)
        assert summary.counts == {"blank": 5, "pairs": 57}
