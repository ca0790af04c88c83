"""Prepared corpora, as `relakit train` reads them."""

import struct

from fault_rows import Row, append, cut, overwrite, put, remove, row, set_json

TRAIN = "train recipe.toml --out out"
DOCUMENT, OFFSETS, TOKENS = (
    "prepared/corpus.json",
    "prepared/train.source.offsets",
    "prepared/train.source.tokens",
)

ROWS: tuple[Row, ...] = (
    row(
        "no corpus.json",
        TRAIN,
        "prepared is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
        remove(DOCUMENT),
    ),
    row(
        "corpus.json is empty",
        TRAIN,
        "prepared/corpus.json is no JSON file: expecting value (line 1, column 1)",
        put(DOCUMENT, ""),
    ),
    row(
        "corpus.json is no JSON",
        TRAIN,
        "prepared/corpus.json is no JSON file: expecting property name enclosed in double quotes (line 1, column 2)",
        put(DOCUMENT, "{"),
    ),
    row(
        "corpus.json is a list",
        TRAIN,
        "prepared/corpus.json does not describe a prepared corpus",
        put(DOCUMENT, "[]"),
    ),
    row(
        "corpus.json of another program",
        TRAIN,
        "prepared/corpus.json does not describe a prepared corpus",
        put(DOCUMENT, "{}"),
    ),
    row(
        "corpus.json is no UTF-8",
        TRAIN,
        "prepared/corpus.json is not UTF-8 (byte 0xff at position 1): it is no file of settings",
        put(DOCUMENT, b"\xff"),
    ),
    row(
        "corpus.json is nested",
        TRAIN,
        "prepared/corpus.json is no JSON file: it is nested too deeply",
        put(DOCUMENT, "[" * 99999),
    ),
    row(
        "a later version",
        TRAIN,
        "prepared/corpus.json has version 99, this relakit reads version 1; prepare the corpus again",
        set_json(DOCUMENT, "version", 99),
    ),
    row(
        "no files in corpus.json",
        TRAIN,
        "prepared/corpus.json is damaged: it has no 'files'; prepare the corpus again",
        set_json(DOCUMENT, "files", ...),
    ),
    row(
        "no splits in corpus.json",
        TRAIN,
        "prepared/corpus.json is damaged: it has no 'splits'; prepare the corpus again",
        set_json(DOCUMENT, "splits", ...),
    ),
    row(
        "splits that are a list",
        TRAIN,
        "prepared/corpus.json is damaged: it has other keys or values than relakit writes; prepare the corpus again",
        set_json(DOCUMENT, "splits", []),
    ),
    row(
        "no training split",
        TRAIN,
        "prepared has no split 'train', it has none; prepare the corpus again, with it",
        set_json(DOCUMENT, "splits", {}),
    ),
    row(
        "pairs below zero",
        TRAIN,
        "prepared/corpus.json is damaged: splits.train.kept cannot be -1; prepare the corpus again",
        set_json(DOCUMENT, "splits.train.kept", -1),
    ),
    row(
        "pairs in words",
        TRAIN,
        "prepared/corpus.json is damaged: splits.train.kept cannot be 'many'; prepare the corpus again",
        set_json(DOCUMENT, "splits.train.kept", "many"),
    ),
    row(
        "more pairs than there are",
        TRAIN,
        "prepared/train.source.offsets has 61 numbers where 1,000,000,000,000,001 were expected; prepare the corpus again",
        set_json(DOCUMENT, "splits.train.kept", 10**15),
    ),
    row(
        "an unknown kind of tokens",
        TRAIN,
        "prepared/corpus.json is damaged: token_type 'float3' is none of <u2, <u4; prepare the corpus again",
        set_json(DOCUMENT, "token_type", "float3"),
    ),
    row(
        "an unknown setting",
        TRAIN,
        "prepared/corpus.json is damaged: it has other keys or values than relakit writes; prepare the corpus again",
        set_json(DOCUMENT, "settings.colour", "red"),
    ),
    row(
        "a setting that is a word",
        TRAIN,
        "prepared/corpus.json is damaged: it has other keys or values than relakit writes; prepare the corpus again",
        set_json(DOCUMENT, "settings.max_tokens", "many"),
    ),
    row(
        "no tokenizer",
        TRAIN,
        "prepared/tokenizer.json is missing; prepare the corpus again",
        remove("prepared/tokenizer.json"),
    ),
    row(
        "another tokenizer",
        TRAIN,
        "prepared/tokenizer.json is not a tokenizer, or is truncated: ... (line ..., column ...); copy or make it again",
        overwrite("prepared/tokenizer.json", -1, b" "),
    ),
    row(
        "half a tokenizer",
        TRAIN,
        "prepared/tokenizer.json has 4,000 bytes, corpus.json says 8,020: it is truncated or from another corpus; prepare the corpus again",
        cut("prepared/tokenizer.json", 4000),
    ),
    row(
        "no tokens",
        TRAIN,
        "prepared/train.source.tokens is missing; prepare the corpus again",
        remove(TOKENS),
    ),
    row(
        "half of the tokens",
        TRAIN,
        "prepared/train.source.tokens has 2,000 bytes, corpus.json says 4,000: it is truncated or from another corpus; prepare the corpus again",
        cut(TOKENS, 2000),
    ),
    row(
        "one byte more of tokens",
        TRAIN,
        "prepared/train.source.tokens has 4,001 bytes, corpus.json says 4,000: it is truncated or from another corpus; prepare the corpus again",
        append(TOKENS, b"\0"),
    ),
    row(
        "no offsets",
        TRAIN,
        "prepared/train.source.offsets is missing; prepare the corpus again",
        remove(OFFSETS),
    ),
    row(
        "half of the offsets",
        TRAIN,
        "prepared/train.source.offsets has 200 bytes, corpus.json says 488: it is truncated or from another corpus; prepare the corpus again",
        cut(OFFSETS, 200),
    ),
    row(
        "offsets that shrink",
        TRAIN,
        "prepared/train.source.offsets is damaged: its offsets do not grow from 0; prepare the corpus again",
        overwrite(OFFSETS, 16, struct.pack("<q", 0)),
    ),
    row(
        "an offset of exabytes",
        TRAIN,
        "prepared/train.source.offsets is damaged: its offsets do not grow from 0; prepare the corpus again",
        overwrite(OFFSETS, 16, struct.pack("<q", 1 << 60)),
    ),
    row(
        "offsets that begin late",
        TRAIN,
        "prepared/train.source.offsets is damaged: its offsets do not grow from 0; prepare the corpus again",
        overwrite(OFFSETS, 0, struct.pack("<q", 3)),
    ),
    row(
        "a token that the tokenizer has not",
        TRAIN,
        "prepared/train.source.tokens is damaged: number 51, in sentence 2, is the token id 60,000; ids of the tokenizer's words are 4 to 299; prepare the corpus again",
        overwrite(TOKENS, 100, struct.pack("<H", 60000)),
    ),
    row(
        "a special token among the words",
        TRAIN,
        "prepared/train.source.tokens is damaged: number 51, in sentence 2, is the token id 0; ids of the tokenizer's words are 4 to 299; prepare the corpus again",
        overwrite(TOKENS, 100, struct.pack("<H", 0)),
    ),
    row(
        "a token out of range in the validation set",
        TRAIN,
        "prepared/valid.target.tokens is damaged: number 3, in sentence 1, is the token id 60,000; ids of the tokenizer's words are 4 to 299; prepare the corpus again",
        overwrite("prepared/valid.target.tokens", 4, struct.pack("<H", 60000)),
    ),
    row(
        "a file for the corpus",
        f"{TRAIN} --set data.prepared=text.en",
        "text.en is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
    ),
)
