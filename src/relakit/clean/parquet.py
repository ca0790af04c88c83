"""Scores as a Parquet file, with pyarrow (the extra ``relakit[parquet]``). No torch here."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from relakit.clean.columns import COLUMNS, NUMBER, Kind

ENDING: Final = ".parquet"
ROWS: Final = 10_000
"""Rows in a row group, however the work was divided."""


def check_parquet(output: Path) -> None:
    """Raise ValueError if Parquet cannot be written or read here."""
    if find_spec("pyarrow") is None:
        raise ValueError(
            f"{output}: Parquet needs pyarrow; install it with pip install 'relakit[parquet]', or "
            "name the output .tsv, .tsv.gz or .tsv.zst"
        )


def write_parquet(file: BinaryIO, path: Path | None, contents: Iterable[bytes]) -> None:
    """Write the lines of a table, its header first; see `relakit.shards.run.Writer`."""
    import pyarrow
    from pyarrow import parquet

    types = {"integer": pyarrow.int64(), "number": pyarrow.float64(), "text": pyarrow.string()}
    kinds: list[tuple[str, Kind]] = [(NUMBER, "integer"), *((c.name, c.kind) for c in COLUMNS)]
    schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds])
    lines = chain.from_iterable(
        content.decode().removesuffix("\n").split("\n") for content in contents
    )
    next(lines)  # the header
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _groups(lines):
            columns = zip(*(row.split("\t") for row in rows), strict=True)
            arrays = [
                pyarrow.array([_value(cell, kind) for cell in cells], types[kind])
                for cells, (_, kind) in zip(columns, kinds, strict=True)
            ]
            writer.write_table(pyarrow.table(arrays, schema=schema), row_group_size=ROWS)


def _groups(lines: Iterator[str]) -> Iterator[list[str]]:
    while rows := list(islice(lines, ROWS)):
        yield rows


def _value(cell: str, kind: Kind) -> Any:
    if not cell:
        return None
    return {"integer": int, "number": float, "text": str}[kind](cell)
