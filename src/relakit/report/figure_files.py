"""Figures as files. Matplotlib is imported only when something is drawn."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relakit.files.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_NO_XML: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters, halves of surrogate pairs, and non-characters"""


def why_no_figures(what: str = "figures", extra: str = "report") -> str | None:
    """The reason why nothing can be drawn here, if there is one.

    Args:
        what: what could not be drawn.
        extra: relakit's extra that installs matplotlib.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name == "matplotlib":
            return f"{what} need matplotlib: pip install 'relakit[{extra}]'"
        return _broken(what, error)
    except Exception as error:  # a broken installation may raise anything
        return _broken(what, error)
    return None


def _broken(what: str, error: Exception) -> str:
    """The reason on one line, whatever the error says."""
    text = " ".join(str(error).split())
    return f"{what} need matplotlib, which cannot be imported: {type(error).__name__}: {text}"


def drawable(text: str) -> str:
    """The text, with every character that SVG does not allow replaced."""
    return _NO_XML.sub("\ufffd", text)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of the path's suffix; missing folders are created."""
    from matplotlib import rc_context

    content = io.BytesIO()
    suffix = path.suffix.removeprefix(".")
    # No date and no random names inside, so that the same results give the same file.
    metadata = {"Date": None} if suffix == "svg" else None
    with rc_context({"svg.hashsalt": "relakit"}):
        figure.savefig(content, format=suffix, dpi=150, metadata=metadata)
    write_whole(path, content.getvalue())
