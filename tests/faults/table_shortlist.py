"""`relakit shortlist`, and shortlists in model directories."""

import numpy as np
from fault_rows import Row, put, row, usage
from safetensors.numpy import save

MAKE = "shortlist model --source text.en --target text.de"
TRANSLATE = "translate model --shortlist --input text.en"
AGAIN = "make it again with relakit shortlist, or delete it"
FILE = "model/shortlist.safetensors"
ABOUT = '{"format": 1, "tokenizers": "0123456789abcdef", "is_joint": true, "best": 1}'


def shortlist(about: str) -> bytes:
    """A file without a token."""
    none = np.zeros(0, dtype=np.int64)
    tensors = {"starts": np.zeros(2, dtype=np.int64), "tokens": none, "frequent": none}
    return save(tensors, metadata={"about": about})


ROWS: tuple[Row, ...] = (
    usage("no pairs", "shortlist model", "Missing option '--source'"),
    usage("no tokens", f"{MAKE} --best 0", "Invalid value for '--best'"),
    row(
        "no such model",
        MAKE.replace("model", "none", 1),
        "none is no model directory: there is no such folder",
    ),
    row(
        "a target that is too short",
        MAKE,
        "text.en has 3 lines, text.de has 1: line n of one must be the translation of line n of "
        "the other",
        put(
            "model/alignment.json",
            '{"layer": 0, "heads": [0], "reading": "normal", "chosen": {"by": "aer"}}',
        ),
        put("text.de", "der Hund\n"),
    ),
    row(
        "no shortlist",
        TRANSLATE,
        f"there is no {FILE}; make it from the training text: relakit shortlist model --source "
        "FILE --target FILE",
    ),
    row(
        "a damaged shortlist",
        TRANSLATE,
        f"{FILE} is damaged, or no shortlist; {AGAIN}",
        put(FILE, b"\0" * 20),
    ),
    row(
        "a shortlist of the future",
        TRANSLATE,
        f"{FILE}: format ...; {AGAIN}",
        put(FILE, shortlist(ABOUT.replace('"format": 1', '"format": 9'))),
    ),
    row(
        "a shortlist of another tokenizer",
        TRANSLATE,
        f"{FILE} was made for another tokenizer, 0123456789ab..., than model has, ...; {AGAIN}",
        put(FILE, shortlist(ABOUT)),
    ),
)
