"""Finished shards on the disk: what is found again, and what is refused."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from relakit.files.leftovers import temporary_name
from relakit.files.locks import BusyError, locked
from relakit.shards.ledger import Ledger, open_ledger, parts_folder
from relakit.shards.work import ShardResult

NOBODY = 2**22 + 1
"""No process has this number."""
FACTS = {"command": "shout", "model": {"config.json": "a" * 64}, "--max-tokens": None}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.tsv"


def keep(output: Path, *indices: int, facts: dict[str, object] = FACTS) -> None:
    with open_ledger(output, facts) as ledger:
        for index in indices:
            ledger.keep(index, ShardResult(f"part {index}\n".encode(), {"long": index}))


def test_what_was_kept_is_found_again_in_order(output: Path) -> None:
    keep(output, 2, 0)
    keep(output, 1)
    with open_ledger(output, FACTS) as ledger:
        assert set(ledger.finished) == {0, 1, 2}
        assert list(ledger.results()) == [
            ShardResult(f"part {n}\n".encode(), {"long": n}) for n in range(3)
        ]
        ledger.remove()
    assert list(output.parent.iterdir()) == []


def test_nothing_is_left_if_nothing_was_kept(output: Path) -> None:
    keep(output)
    assert list(output.parent.iterdir()) == []


def test_a_job_without_parts_is_forgotten(output: Path) -> None:
    """As left by a command that was killed before its first part was whole."""
    keep(output, 0)
    for part in parts_folder(output).glob("*.part"):
        part.unlink()
    keep(output, 0, facts={**FACTS, "command": "whisper"})
    with open_ledger(output, {**FACTS, "command": "whisper"}) as ledger:
        assert set(ledger.finished) == {0}


def test_restart_forgets(output: Path) -> None:
    keep(output, 0, 1)
    with open_ledger(output, {"command": "other"}, restart=True) as ledger:
        assert not ledger.finished


def test_killed_while_it_forgets(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any number of files: the same command begins again, with and without parts left."""
    unlink = Path.unlink
    for allowed in range(4):
        keep(output, 0, 1, 2)
        removed: list[Path] = []

        def killed(path: Path, missing_ok: bool = False) -> None:
            if path.parent == parts_folder(output) and not path.name.startswith("."):
                removed.append(path)  # noqa: B023
                if len(removed) > allowed:  # noqa: B023
                    raise KeyboardInterrupt
            unlink(path, missing_ok)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", killed)
            with pytest.raises(KeyboardInterrupt), open_ledger(output, FACTS, restart=True):
                pass
        with open_ledger(output, FACTS, restart=True) as ledger:
            assert not ledger.finished


def test_killed_while_the_parts_are_removed(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a folder is left under a hidden name; the next command clears it away."""
    keep(output, 0, 1)
    with monkeypatch.context() as patch, open_ledger(output, FACTS) as ledger:
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)
        patch.setattr(os, "getpid", lambda: NOBODY)
        ledger.remove()
    assert [path.name.endswith(".tmp") for path in output.parent.iterdir()] == [True]
    keep(output)
    assert list(output.parent.iterdir()) == []


def test_killed_while_a_part_is_written(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(output, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: NOBODY)
        half = temporary_name(parts_folder(output) / "000001.part")
    half.write_bytes(b"half")
    with open_ledger(output, FACTS):
        assert not half.exists()


def test_keeping_a_part_does_not_look_at_the_others(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or many shards would take time that grows with the square of their number."""
    with open_ledger(output, FACTS) as ledger:
        ledger.keep(0, ShardResult(b"first"))
        with monkeypatch.context() as patch:
            for name in ("listdir", "scandir"):
                patch.setattr(os, name, None)
            ledger.keep(1, ShardResult(b"second"))
        assert set(ledger.finished) == {0, 1}


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"part 0\n", b"x"])
def test_a_part_that_is_not_whole_is_done_again(output: Path, damage: bytes) -> None:
    keep(output, 0, 1)
    part = parts_folder(output) / "000000.part"
    part.write_bytes(part.read_bytes() + damage if damage == b"x" else damage)
    with open_ledger(output, FACTS) as ledger:
        assert set(ledger.finished) == {1}


def test_a_part_with_other_bytes(output: Path) -> None:
    keep(output, 0)
    part = parts_folder(output) / "000000.part"
    part.write_bytes(part.read_bytes().replace(b"part 0", b"part 9"))
    with (
        pytest.raises(ValueError, match=re.escape(f"{part} is damaged; remove it")),
        open_ledger(output, FACTS) as ledger,
    ):
        list(ledger.results())


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({**FACTS, "--max-tokens": 100}, "--max-tokens was not set, is 100. Give the same"),
        ({**FACTS, "model": {"config.json": "b" * 64}}, "model/config.json has changed. Give"),
        (
            {**FACTS, "reverse": {"config.json": "b" * 64}},
            "reverse/config.json was not set, is bbbbbbbbbbbb...",
        ),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "; and 3 more. Give the same"),
    ],
)
def test_another_job_is_refused(output: Path, facts: dict[str, object], problem: str) -> None:
    keep(output, 0)
    before = sorted(parts_folder(output).iterdir())
    with pytest.raises(ValueError, match="holds finished parts of another job") as caught:
        keep(output, 1, facts=facts)
    assert problem in str(caught.value)
    assert sorted(parts_folder(output).iterdir()) == before


def test_somebody_elses_folder_is_left_alone(output: Path) -> None:
    parts_folder(output).mkdir()
    (parts_folder(output) / "000000.part").write_text("mine")
    for restart in (False, True):
        with (
            pytest.raises(
                FileExistsError, match=r"'000000\.part', which is no part of an unfinish"
            ),
            open_ledger(output, FACTS, restart=restart),
        ):
            pass
    assert (parts_folder(output) / "000000.part").read_text() == "mine"


@pytest.mark.parametrize("content", ["[]", json.dumps({"format": "relakit-job", "version": 9})])
def test_a_job_of_another_kind(output: Path, content: str) -> None:
    parts_folder(output).mkdir()
    (parts_folder(output) / "job.json").write_text(content)
    with (
        pytest.raises(ValueError, match="is not of this relakit; start again with --restart"),
        open_ledger(output, FACTS),
    ):
        pass


def test_one_at_a_time(output: Path) -> None:
    keep(output, 0)
    with locked(parts_folder(output)), pytest.raises(BusyError), open_ledger(output, FACTS):
        pass
    assert Ledger(parts_folder(output), FACTS).finished, "nothing was lost"
