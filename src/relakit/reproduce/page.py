"""`results/README.md`: every table beside the paper's, made from the result files alone."""

from pathlib import Path


def write_page(results: Path) -> Path:
    """Write the page of a folder of results; returns its path."""
    return results / "README.md"
