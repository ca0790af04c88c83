"""`relakit score`: pairs in all formats, models, outputs and what is left of other jobs."""

import json

from fault_rows import Row, append, cut, overwrite, put, put_gzip, row, set_json, usage

SCORE = "score model --source text.en --target text.de --output scores.tsv"
ONE = "score model --source pairs --output scores.tsv"
MEMORY = "score model --source pairs.tmx --output scores.tsv"
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>ein</seg></tuv></tu>'


def tmx(source: str = "one", before: str = "") -> str:
    return f"<?xml version='1.0'?>\n{before}<tmx><body>\n{UNIT.format(source)}\n</body></tmx>\n"


LAUGHS = (
    '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]>\n'
)
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY secret SYSTEM "file:///etc/passwd">]>\n'
JOB = {"format": "relakit-job", "version": 1, "facts": {"command": "align"}}
PART = b'{"bytes": 2, "sha256": "x", "counts": {}}\n1\n'

ROWS: tuple[Row, ...] = (
    usage("no pairs", "score model", "Missing option '--source'"),
    row("no such model", SCORE.replace("model", "none", 1), "none is no model directory: there is no such folder"),
    row("no such source", "score model --source none", "none: there is no such file"),
    row("a folder for a source", "score model --source corpus", "corpus is a folder; name a file"),
    row(
        "differing numbers of lines",
        SCORE,
        "text.en has 3 lines, text.de has 4: line n of one must be the translation of line n of the other",
        append("text.de", b"vier\n"),
    ),
    row(
        "a byte that is not UTF-8",
        SCORE,
        "text.de, line 2: not UTF-8 (byte 0xff at position 1 of the line); convert the file, for instance with iconv",
        put("text.de", b"eins\n\xff\ndrei\n"),
    ),
    row(
        "a weight that is no number",
        SCORE,
        ".../model computes NaN or infinity in pair 1: its weights are broken, or its training has diverged; make a model of earlier checkpoints with relakit average, or train again with a lower learning rate",
        overwrite("model/model.safetensors", -4, b"\x00\x00\xc0\x7f"),
    ),
    row(
        "a truncated archive",
        SCORE,
        "text.en is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("text.en", b"one\ntwo\nthree\n", cut=6),
    ),
    row("an empty file", SCORE, "text.en is empty", put("text.en", "")),
    row(
        "nothing between the sides",
        ONE,
        "pairs, line 1: neither a tab nor ||| between a source and a target; give the translations in a file of their own, or both sides as tsv, bars or tmx",
        put("pairs", "one eins\n"),
    ),
    row(
        "bars twice",
        ONE,
        "pairs, line 2: ||| must be there once, between source and target, not 2 times",
        put("pairs", "one ||| eins\ntwo ||| zwei ||| 2\n"),
    ),
    row(
        "a column too far",
        "score model --source pairs.tsv --columns 1,3",
        "pairs.tsv, line 1: it has 2 columns, but column 3 is asked for",
    ),
    row(
        "an unknown column",
        "score model --source pairs.tsv --columns en,de",
        "pairs.tsv, line 1: no column called 'en'; there are source, target",
        put("pairs.tsv", "source\ttarget\none\teins\n"),
    ),
    row(
        "a table of nothing but names",
        "score model --source pairs.tsv --columns source,target",
        "pairs.tsv has only the line that names its columns, and no pairs",
        put("pairs.tsv", "source\ttarget\n"),
    ),
    row(
        "one column",
        "score model --source pairs.tsv --columns 1",
        "--columns must be SOURCE,TARGET, got '1'",
    ),
    row(
        "the same column twice",
        "score model --source pairs.tsv --columns 2,2",
        "source and target are both column '2'; name two",
    ),
    row(
        "columns of two files",
        f"{SCORE} --columns 2,1",
        "--columns is for one file with both sides; leave it or --target out",
    ),
    row(
        "columns of a memory",
        f"{MEMORY} --columns 2,1",
        "--columns 2,1 is for tables, pairs.tmx is read as tmx",
        put("pairs.tmx", tmx()),
    ),
    row(
        "an unknown format",
        f"{ONE} --input-format csv",
        "unknown --input-format 'csv'; choose one of tsv, bars, tmx",
        put("pairs", "one\teins\n"),
    ),
    row(
        "a memory of other languages",
        f"{MEMORY} --languages fr,de",
        "pairs.tmx has no text in the language 'fr'; its languages are de, en",
        put("pairs.tmx", tmx()),
    ),
    row(
        "a memory without languages",
        MEMORY,
        "pairs.tmx: name the languages of source and target, such as en and de; its languages are de, en",
        put("pairs.tmx", tmx()),
        set_json("model/config.json", "languages", {}),
    ),
    row(
        "a billion laughs",
        MEMORY,
        "pairs.tmx, line 2: it defines the entity 'a', which is not expanded here; write out what it stands for",
        put("pairs.tmx", tmx("&c;", LAUGHS)),
    ),
    row(
        "an entity that reads a file",
        MEMORY,
        "pairs.tmx, line 2: it defines the entity 'secret', which is not expanded here; write out what it stands for",
        put("pairs.tmx", tmx("&secret;", OUTSIDE)),
    ),
    row(
        "a memory that is cut off",
        MEMORY,
        "pairs.tmx is truncated: it ends at line 3 without </tmx>; get or make it again",
        put("pairs.tmx", tmx()),
        cut("pairs.tmx", 110),
    ),
    row(
        "a web page for a memory",
        MEMORY,
        "pairs.tmx, line 1: it begins with <html> instead of <tmx>: it is no TMX",
        put("pairs.tmx", "<html></html>"),
    ),
    row(
        "a bomb in a gzip file",
        MEMORY.replace(".tmx", ".tmx.gz"),
        "pairs.tmx.gz, line 1: a segment of more than 1,048,576 characters, the most there may be",
        put_gzip("pairs.tmx.gz", b"<tmx><body><tu><tuv><seg>" + b"x" * 5_000_000),
    ),
    row(
        "a reverse model of the same direction",
        f"{SCORE} --reverse model",
        "--reverse model: the models must translate in opposite directions, but the source language of the first is 'en' and the target language of the second is 'de'; train the second with relakit train RECIPE --reverse",
    ),
    row("a reverse model that is none", f"{SCORE} --reverse corpus", "corpus is no model directory: it has no config.json. `relakit train` writes its models to OUT/model"),
    row(
        "text without text for languages",
        f"{SCORE} --languages-from text.en blank",
        "--languages-from blank: there is no text to learn a language from",
        put("blank", "\n\n"),
    ),
    row(
        "no text for languages",
        f"{SCORE} --languages-from text.en none",
        "none: there is no such file",
    ),
    row(
        "broken languages",
        SCORE,
        "model/languages.json: source must hold n-grams of up to 4 characters and how often each occurs",
        set_json("model/languages.json", "source", {"abcdef": 1}),
    ),
    row(
        "a choice of heads that the model has not",
        SCORE,
        "model/alignment.json: there is no layer 8; the decoder has 1 of them, counted from 1",
        put("model/alignment.json", json.dumps({"layer": 7, "heads": [0], "reading": "normal", "chosen": {"by": "given"}})),
    ),
    row(
        "attention that cannot fit into memory",
        f"{SCORE} --max-tokens 10000000",
        "recording the attention of model for one pair of 10,000,000 tokens would need about ... of memory, this machine has ...; set --max-tokens to less",
    ),
    usage("no tokens", f"{SCORE} --max-tokens 0", "Invalid value for '--max-tokens': it must be at least 1, got '0'"),
    row(
        "no workers",
        f"{SCORE} --workers 0",
        "--workers must be from 1 to ... on this machine with ... processors, got 0",
    ),
    row("an unknown engine", f"{SCORE} --engine spark", "unknown --engine 'spark'; choose one of processes, ray"),
    row("a time-out without a cluster", f"{SCORE} --timeout 5", "--timeout 5 is for --engine ray; leave it out"),
    row("an output that is a folder", SCORE.replace("scores.tsv", "corpus"), "corpus cannot be written: it is a folder; name a file"),
    row(
        "an output that is the input",
        SCORE.replace("scores.tsv", "text.en"),
        "--output text.en is also --source text.en, which would be overwritten; choose another name",
    ),
    row(
        "parts of another job",
        SCORE,
        'scores.tsv.parts holds finished parts of another job: relakit was not set, is "..."; command was "align", is "score"; MODEL/config.json was not set, is ...; and ... more. Give the same command as then to resume, start over with --restart, or choose another --output',
        put("scores.tsv.parts/job.json", json.dumps(JOB)),
        put("scores.tsv.parts/000000.part", PART),
    ),
    row(
        "parts that are somebody else's",
        SCORE,
        "scores.tsv.parts holds 'photo.jpg', which is no part of an unfinished output; move it away, or choose another --output",
        put("scores.tsv.parts/photo.jpg", b"x"),
    ),
    row(
        "a job that is no JSON",
        SCORE,
        "scores.tsv.parts/job.json is no JSON file: ...",
        put("scores.tsv.parts/job.json", "{"),
    ),
    row(
        "a file where the receipt will be",
        SCORE,
        "scores.tsv.json is there already, and is no receipt of scores.tsv, which would replace it; move it away, or choose another --output",
        put("scores.tsv.json", "{}"),
    ),
)  # fmt: skip
