"""Processes of ours run our modules, whatever lies in the folder that they start in."""

import subprocess
from pathlib import Path

import pytest

from relakit.python_process import module_command


def shown_by(program: str, *arguments: str, library: Path, cwd: Path) -> str:
    """What a module prints that lies in a library's folder."""
    (library / "shows.py").write_text(program)
    return subprocess.run(
        module_command("shows", *arguments),
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env={"PYTHONPATH": str(library)},
    ).stdout


@pytest.mark.parametrize("name", ["json", "runpy"])
def test_files_in_the_working_folder_are_not_taken_for_libraries(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{name}.py").write_text("raise SystemExit('this is not the library')")
    program = f"import {name}\nprint({name}.__file__)"
    assert str(folder) not in shown_by(program, library=tmp_path, cwd=folder)


def test_arguments_and_name_are_those_of_a_program(tmp_path: Path) -> None:
    program = "import sys\nprint(__name__, sys.argv[1:])"
    shown = shown_by(program, "a", "b c", library=tmp_path, cwd=tmp_path)
    assert shown == "__main__ ['a', 'b c']\n"
