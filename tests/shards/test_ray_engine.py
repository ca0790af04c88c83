"""Shards on a Ray cluster of this machine; skipped where Ray is not installed."""

import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from shard_works import expected, shouting, write_files

from relakit.data.parallel_files import read_numbered_pairs
from relakit.shards.cutting import cut_into_shards
from relakit.shards.engines import ray as engine_module
from relakit.shards.engines.ray import RayCluster, _Hangs, _patiently
from relakit.shards.run import Job, run_job
from relakit.shards.work import WorkDescription

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"install it with pip install 'relakit\[ray\]'"):
        RayCluster(2)


@pytest.mark.parametrize(
    ("workers", "patience", "problem"),
    [(0, 1.0, "--workers must be at least 1, got 0"), (1, 0.0, "--timeout must be above 0, got 0")],
)
def test_impossible_settings(
    workers: int, patience: float, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda name: name)
    with pytest.raises(ValueError, match=problem):
        RayCluster(workers, patience=patience)


def test_patience_ends() -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"index": 1}
        time.sleep(60)

    found = _patiently(rows(), 0.2)
    assert next(found) == {"index": 1}
    with pytest.raises(_Hangs, match="gave nothing back"):
        next(found)


def test_what_ray_raises_is_a_reason_to_try_again() -> None:
    def rows() -> Iterator[dict[str, int]]:
        raise RuntimeError("the actor\ndied")
        yield {}

    with pytest.raises(_Hangs, match="failed: the actor died"):
        next(_patiently(rows(), 5))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests, whose actors find the works of the tests."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": ":".join(sys.path)}},
    )
    yield
    ray.shutdown()


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
class TestOnACluster:
    def run(self, work: WorkDescription, folder: Path, patience: float = 120) -> bytes:
        told: list[int] = []
        shards = cut_into_shards(read_numbered_pairs(write_files(folder, 60)), 10)
        engine = RayCluster(2, patience=patience)
        done = dict(engine.run(work, shards, "line", told.append))
        assert sum(told) == 60
        return b"".join(done[index].content for index in sorted(done))

    def test_the_same_as_elsewhere(self, tmp_path: Path) -> None:
        assert self.run(shouting(), tmp_path) == expected(60)

    def test_an_actor_that_is_killed(self, tmp_path: Path) -> None:
        graves = tmp_path / "graves"
        graves.mkdir()
        work = shouting(deadly="s25", graves=[str(graves), 2])
        assert self.run(work, tmp_path) == expected(60)
        assert len(list(graves.iterdir())) == 2

    def test_errors_come_from_actors(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"^line 25 is refused$"):
            self.run(shouting(refused="s25"), tmp_path)

    def test_into_a_file(self, tmp_path: Path) -> None:
        job = Job(shouting(), write_files(tmp_path, 57), shard_pairs=10)
        summary = run_job(job, tmp_path / "out", RayCluster(2, patience=120))
        assert (tmp_path / "out").read_bytes() == expected(57)
        assert summary.counts == {"blank": 5, "pairs": 57}
