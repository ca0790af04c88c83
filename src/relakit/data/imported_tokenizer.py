"""Tokenizers from other tools, made to work like our own: SentencePiece's and Hugging Face's.

Their pieces are kept but not their ids, since our special tokens come first. Spaces are treated as
in our own tokenizers: several count as one, and there is one before every word, even the first.
"""

import json
import logging
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import parse_json
from relakit.data.sentencepiece_file import SentencePieceModel, read_sentencepiece
from relakit.data.token_spans import SPACE_MARK
from relakit.data.tokenizer import (
    SPACES,
    SPECIAL_TOKENS,
    UNKNOWN,
    UNKNOWN_TEXT,
    Tokenizer,
    broken_tokenizer,
    parse_tokenizer,
)
from relakit.files.reading import open_file
from relakit.limits import MAX_JSON_BYTES

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 16 * MAX_JSON_BYTES
"""Largest tokenizer.json that is read: those of large models have a few MB."""

_NO_NAMES_IN_TEXT: Final = (
    f"<(?=(?:{'|'.join(token[1:-1] for token in SPECIAL_TOKENS)}|0x[0-9A-F]{{2}})>)"
)
"""Matches the first character of text that looks like the name of a special token or of a byte.
Splitting it off keeps the rest from being taken for one: text that looks like a special token is
text."""


def import_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer: our own, SentencePiece's ``.model`` or Hugging Face's ``tokenizer.json``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a tokenizer, or decoding does not give the text back; names the file.
    """
    if not _is_json(path):
        document = _from_sentencepiece(read_sentencepiece(path))
    else:
        document = _read_document(path)
        if _is_our_own(document):
            return Tokenizer.load(path)
        try:
            document = _from_hugging_face(document)
        except KeyError as error:
            raise broken_tokenizer(path, f"it has no {error}") from None
        except (TypeError, AttributeError):
            problem = "it has other keys or values than a tokenizer has"
            raise broken_tokenizer(path, problem) from None
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from None
    try:
        return Tokenizer(parse_tokenizer(json.dumps(document)))
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None


def _is_json(path: Path) -> bool:
    with open_file(path) as file:
        return file.read(64).lstrip()[:1] == b"{"


def _read_document(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"{path} has {size:,} bytes, which is no tokenizer: they have at most "
            f"{MAX_FILE_BYTES:,}"
        )
    try:
        document: dict[str, Any] = parse_json(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        raise broken_tokenizer(path, "it is not UTF-8") from None
    except ValueError as error:
        raise broken_tokenizer(path, str(error)) from None
    return document  # it begins with a brace


def _is_our_own(document: Mapping[str, Any]) -> bool:
    try:
        Tokenizer(parse_tokenizer(json.dumps(document)))
    except ValueError:
        return False
    return True


def _from_sentencepiece(model: SentencePieceModel) -> dict[str, Any]:
    """A document for the `tokenizers` library that splits text as SentencePiece does."""
    symbols = [piece.text for piece in model.pieces if piece.kind == "user"]
    if symbols:
        logger.warning(
            "%s user-defined symbols, such as %r, are pieces like others: nothing keeps them whole",
            f"{len(symbols):,}",
            symbols[0],
        )
    kept = {
        piece.text: piece.score
        for piece in model.pieces
        if piece.kind in ("normal", "user", "byte") and piece.text not in SPECIAL_TOKENS
    }
    names = [*SPECIAL_TOKENS, *kept]
    if model.is_bpe:
        content: dict[str, Any] = {
            "type": "BPE",
            "vocab": {name: number for number, name in enumerate(names)},
            "merges": list(_merges([p.text for p in model.pieces if p.kind == "normal"], kept)),
            "unk_token": SPECIAL_TOKENS[UNKNOWN],
            "fuse_unk": True,
            "byte_fallback": model.byte_fallback,
        }
    else:
        content = {
            "type": "Unigram",
            "unk_id": UNKNOWN,
            "vocab": [[name, kept.get(name, 0.0)] for name in names],
            "byte_fallback": model.byte_fallback,
        }
    normalizer = None
    if model.character_map:
        charsmap = b64encode(model.character_map).decode()
        normalizer = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    return _document(content, normalizer, _metaspace(crosses_words=_cross_words(kept)))


def _merges(pieces: Sequence[str], scores: Mapping[str, float]) -> Iterator[list[str]]:
    """Pairs of pieces that make another piece, in the order in which SentencePiece joins them.

    Its file holds only the results, each with a score: whichever two pieces give the best result
    are joined first.
    """
    numbers = {piece: number for number, piece in enumerate(pieces)}
    found = []
    for whole in pieces:
        for cut in range(1, len(whole)):
            left, right = numbers.get(whole[:cut]), numbers.get(whole[cut:])
            if left is not None and right is not None:
                found.append((-scores[whole], left, right))
    found.sort()
    return ([pieces[left], pieces[right]] for _, left, right in found)


def _cross_words(pieces: Iterable[str]) -> bool:
    """Whether any piece continues after a space (``split_by_whitespace = false``)."""
    return any(SPACE_MARK in piece.lstrip(SPACE_MARK) for piece in pieces)


def _from_hugging_face(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same tokenizer with our special tokens, spaces and ids.

    What it adds to a text (``post_processor``) or looks for in it (``added_tokens``) is left out.
    """
    kind = document["model"]["type"]
    if kind not in ("BPE", "Unigram"):
        raise ValueError(f"its model is {kind}; it must be BPE or Unigram")
    parts = list(_parts(document.get("pre_tokenizer")))
    types = [part["type"] for part in parts]
    special = {t["content"] for t in document.get("added_tokens") or () if t.get("special")}
    added = {t["content"] for t in document.get("added_tokens") or ()} - special
    make = _own_bpe if kind == "BPE" else _own_unigram
    content = make(document["model"], {*special, *SPECIAL_TOKENS})
    lost = sorted(added - set(_names(content)))
    if lost:
        logger.warning("%s added tokens, such as %r, are left out", f"{len(lost):,}", lost[0])
    if "ByteLevel" in types:
        split = [{**p, "add_prefix_space": False} if p["type"] == "ByteLevel" else p for p in parts]
        return _document(content, document.get("normalizer"), split, is_bytes=True)
    if "Metaspace" in types:
        if any(part.get("replacement", SPACE_MARK) != SPACE_MARK for part in parts):
            raise ValueError(f"its spaces are not written as {SPACE_MARK!r}")
        others = [part for part in parts if part["type"] not in ("Metaspace", "WhitespaceSplit")]
        crosses = not all(part.get("split", True) for part in parts)
        split = [*others, *_metaspace(crosses_words=crosses)]
        return _document(content, document.get("normalizer"), split)
    raise ValueError(
        "it splits text by other rules than ByteLevel or Metaspace, so that text would not come "
        "back from its tokens; of a SentencePiece model, give the .model file"
    )


def _own_bpe(model: Mapping[str, Any], special: set[str]) -> dict[str, Any]:
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise ValueError(f"its pieces are marked with {model[key]!r} ({key})")
    ordinary = [name for name in sorted(model["vocab"], key=model["vocab"].get)
                if name not in special]  # fmt: skip
    names = {name: number for number, name in enumerate([*SPECIAL_TOKENS, *ordinary])}
    pairs = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    return {
        **model,
        "vocab": names,
        "merges": [[a, b] for a, b in pairs if {a, b, a + b} <= names.keys()],
        "unk_token": SPECIAL_TOKENS[UNKNOWN],
        "dropout": None,
    }


def _own_unigram(model: Mapping[str, Any], special: set[str]) -> dict[str, Any]:
    ordinary = [[name, score] for name, score in model["vocab"] if name not in special]
    return {
        **model,
        "vocab": [*([name, 0.0] for name in SPECIAL_TOKENS), *ordinary],
        "unk_id": UNKNOWN,
    }


def _names(model: Mapping[str, Any]) -> Iterable[str]:
    return model["vocab"] if model["type"] == "BPE" else (name for name, _ in model["vocab"])


def _parts(pre_tokenizer: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """The single steps of a pre-tokenizer."""
    if pre_tokenizer is None:
        return
    if pre_tokenizer["type"] == "Sequence":
        for part in pre_tokenizer["pretokenizers"]:
            yield from _parts(part)
    else:
        yield pre_tokenizer


def _metaspace(*, crosses_words: bool) -> list[dict[str, Any]]:
    return [
        {"type": "Split", "pattern": {"Regex": _NO_NAMES_IN_TEXT}, "behavior": "Isolated",
         "invert": False},
        {"type": "Metaspace", "replacement": SPACE_MARK, "prepend_scheme": "never",
         "split": not crosses_words},
    ]  # fmt: skip


def _document(
    model: Mapping[str, Any],
    normalizer: Mapping[str, Any] | None,
    split: Sequence[Mapping[str, Any]],
    *,
    is_bytes: bool = False,
) -> dict[str, Any]:
    pieces = [
        {"type": "Replace", "pattern": {"String": SPECIAL_TOKENS[UNKNOWN]},
         "content": f" {UNKNOWN_TEXT} "},
        {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]  # fmt: skip
    spaces = [
        {"type": "Replace", "pattern": {"Regex": SPACES}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Prepend", "prepend": " "},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence",
                       "normalizers": [*([normalizer] if normalizer else []), *spaces]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(split)},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                    "use_regex": False} if is_bytes else {"type": "Sequence", "decoders": pieces},
        "model": dict(model),
    }  # fmt: skip
