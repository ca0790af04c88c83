"""Figures as files. Matplotlib is imported only when something is drawn."""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from relakit.data.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def why_no_figures() -> str | None:
    """The reason why nothing can be drawn here, if there is one."""
    if find_spec("matplotlib") is None:
        return "figures need matplotlib: pip install 'relakit[report]'"
    return None


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of the path's suffix; missing folders are made."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    suffix = path.suffix.removeprefix(".")
    # Neither a date nor random names inside: the same results give the same file.
    metadata = {"Date": None} if suffix == "svg" else None
    with rc_context({"svg.hashsalt": "relakit"}):
        figure.savefig(content, format=suffix, dpi=150, metadata=metadata)
    write_whole(path, content.getvalue())
