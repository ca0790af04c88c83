"""How to start this interpreter again, with one of our modules as its program."""

import sys
from typing import Final

_STARTER: Final = """
import sys
sys.path[:] = filter(None, sys.path)  # an empty one is the working folder
from runpy import run_module
run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """Like ``python -m MODULE ARGUMENTS``, without the working folder on the module search path.

    A user's ``json.py`` there would be imported instead of the library's. ``-P``, which does the
    same, needs Python 3.11.
    """
    return [sys.executable, "-c", _STARTER, module, *arguments]
