"""How threads wait: settled before torch is there, and left alone where the user has chosen."""

import subprocess
import sys

import pytest

from relakit.cli.waiting_threads import CHOSEN, WAITING, let_threads_sleep


def test_nothing_was_chosen() -> None:
    environment = {"HOME": "/"}
    let_threads_sleep(environment)
    assert environment == {"HOME": "/", **WAITING}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_user_has_chosen(name: str) -> None:
    environment = {name: "mine"}
    let_threads_sleep(environment)
    assert environment == {name: "mine"}


def test_a_command_settles_it_before_torch_is_loaded() -> None:
    """OpenMP reads its settings once, when torch is loaded."""
    program = (
        "import os, sys; sys.argv = ['relakit', '--version']\n"
        "from relakit.cli import main\n"
        "def seen(wanted): print('torch' in sys.modules, os.environ.get('GOMP_SPINCOUNT'))\n"
        "main.version = lambda name: seen(name) or ''\n"
        "main.main()"
    )
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[0] == f"False {WAITING['GOMP_SPINCOUNT']}"
