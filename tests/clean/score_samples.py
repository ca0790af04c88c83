"""Tables of scores that are made up, as `relakit score` would write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from relakit.clean.columns import COLUMNS, NUMBER
from relakit.data.compression import compressed_by_ending

Row = Mapping[str, object]
NAMES = (NUMBER, *(column.name for column in COLUMNS))


def score_row(line: int, source: str, target: str, **cells: object) -> Row:
    """A row whose lengths are those of the texts; with other cells as given."""
    if not (source.strip() and target.strip()):
        return {NUMBER: line}
    words = [len(text.split()) for text in (source, target)]
    letters = [len("".join(text.split())) for text in (source, target)]
    return {
        NUMBER: line,
        "null_rate": 0.25,
        "attention_mass": 1.5,
        "unsupported_words": 0,
        "unsupported_share": 0.05,
        "uncovered_words": 0,
        "cross_entropy": 2.0,
        "worst_loss": 5.0,
        "worst_token": "x",
        "worst_span_loss": 3.0,
        "end_loss": 0.1,
        "source_words": words[0],
        "target_words": words[1],
        "same_words": 0,
        "word_ratio": words[1] / words[0],
        "character_ratio": letters[1] / letters[0],
        **cells,
    }


def write_table(path: Path, rows: Sequence[Row], names: Sequence[str] = NAMES) -> Path:
    lines = ["\t".join(names), *("\t".join(str(row.get(n, "")) for n in names) for row in rows)]
    with path.open("wb") as file, compressed_by_ending(path, file) as packed:
        packed.write("".join(f"{line}\n" for line in lines).encode())
    return path
