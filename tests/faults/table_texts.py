"""Files of text, wherever they are read."""

from fault_rows import Row, append, link, make_folder, put, put_gzip, row

PREPARE = "prepare out --train text.en text.de --vocab-size 300"
TRANSLATE = "translate model --input text.en --output out.de"
EVALUATE = "evaluate --hypothesis text.en --reference text.de"
ANALYZE = "analyze model --source text.en --target text.de --out report --no-translate"

ROWS: tuple[Row, ...] = (
    row("prepare: no text", PREPARE, "text.en is empty", put("text.en", ""), put("text.de", "")),
    row(
        "prepare: blank lines",
        PREPARE,
        "text.en has no text: all its 3 lines are blank",
        put("text.en", "\n \n\n"),
        put("text.de", "\n\n\n"),
    ),
    row(
        "prepare: one side blank",
        PREPARE,
        "text.en has no text: all its 3 lines are blank",
        put("text.en", "\n \n\n"),
    ),
    row(
        "prepare: a byte that is no UTF-8",
        PREPARE,
        "text.en, line 2: not UTF-8 (byte 0xff at position 2 of the line); convert the file, for instance with iconv",
        put("text.en", b"a\nb\xff\nc\n"),
    ),
    row(
        "prepare: a NUL byte",
        PREPARE,
        "text.en, line 2: a NUL byte at position 2 of the line: it is not text, or UTF-16; convert the file with iconv, or remove the bytes with tr -d '\\000'",
        put("text.en", b"a\nb\0\nc\n"),
    ),
    row(
        "prepare: UTF-16",
        PREPARE,
        "text.en is text in UTF-16; give UTF-8 text, plain, gzip or zstd",
        put("text.en", "a\nb\nc\n".encode("utf-16")),
    ),
    row(
        "prepare: a zip archive",
        PREPARE,
        "text.en is a zip archive; give UTF-8 text, plain, gzip or zstd",
        put("text.en", b"PK\x03\x04abc"),
    ),
    row(
        "prepare: an xz file",
        PREPARE,
        "text.en is compressed with xz; give UTF-8 text, plain, gzip or zstd",
        put("text.en", b"\xfd7zXZ\x00abc"),
    ),
    row(
        "prepare: a bzip2 file",
        PREPARE,
        "text.en is compressed with bzip2; give UTF-8 text, plain, gzip or zstd",
        put("text.en", b"BZh91AY&SYabc"),
    ),
    row(
        "prepare: half a gzip file",
        PREPARE,
        "text.en is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("text.en", b"a\nb\nc\n" * 99, cut=12),
    ),
    row(
        "prepare: something after gzip",
        PREPARE,
        "text.en is damaged: after the end of its gzip stream comes something else; get or make it again",
        put_gzip("text.en", b"a\nb\nc\n", after=b"xyz"),
    ),
    row(
        "prepare: damaged gzip",
        PREPARE,
        "text.en is damaged: it cannot be unpacked; get or make it again",
        put("text.en", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff"),
    ),
    row(
        "prepare: damaged zstd",
        PREPARE,
        "text.en is truncated: its zstd stream ends too early; get or make it again",
        put("text.en", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff"),
    ),
    row(
        "prepare: half a zstd file",
        PREPARE,
        "text.en is truncated: its zstd stream ends too early; get or make it again",
        put("text.en", b"\x28\xb5\x2f\xfd\x24"),
    ),
    row(
        "prepare: a line of 2 MB",
        PREPARE,
        "text.en, line 2: it has more than 1,048,576 bytes, the most a line may have; give text with one sentence per line",
        put("text.en", "a\n" + "x" * 2_000_000 + "\nc\n"),
    ),
    row(
        "prepare: a line of 2 MB in gzip",
        PREPARE,
        "text.en, line 2: it has more than 1,048,576 bytes, the most a line may have; give text with one sentence per line",
        put_gzip("text.en", b"a\n" + b"x" * 2_000_000 + b"\nc\n"),
    ),
    row(
        "prepare: a link to itself",
        PREPARE,
        "text.en (train): there is no such file",
        put("text.de", ""),
        lambda f: (f / "text.en").unlink(),
        link("text.en", "text.en"),
    ),
    row(
        "translate: a byte that is no UTF-8",
        TRANSLATE,
        "text.en, line 2: not UTF-8 (byte 0xff at position 2 of the line); convert the file, for instance with iconv",
        put("text.en", b"a\nb\xff\nc\n"),
    ),
    row(
        "translate: a NUL byte",
        TRANSLATE,
        "text.en, line 2: a NUL byte at position 2 of the line: it is not text, or UTF-16; convert the file with iconv, or remove the bytes with tr -d '\\000'",
        put("text.en", b"a\nb\0\nc\n"),
    ),
    row(
        "translate: a line of 2 MB",
        TRANSLATE,
        "text.en, line 2: it has more than 1,048,576 bytes, the most a line may have; give text with one sentence per line",
        put("text.en", "a\n" + "x" * 2_000_000 + "\nc\n"),
    ),
    row(
        "translate: half a gzip file",
        TRANSLATE,
        "text.en is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("text.en", b"a\nb\nc\n" * 99, cut=12),
    ),
    row(
        "translate: something after gzip",
        TRANSLATE,
        "text.en is damaged: after the end of its gzip stream comes something else; get or make it again",
        put_gzip("text.en", b"a\nb\nc\n", after=b"xyz"),
    ),
    row(
        "translate: a folder",
        TRANSLATE.replace("text.en", "corpus"),
        "corpus is a folder; name a file",
    ),
    row(
        "translate: no such file",
        TRANSLATE.replace("text.en", "none"),
        "none: there is no such file",
    ),
    row(
        "translate: a path below a file",
        TRANSLATE.replace("text.en", "text.de/x"),
        "text.de/x: there is no such file",
    ),
    row(
        "translate: too long, and that is an error",
        TRANSLATE + " --max-tokens 2 --too-long error",
        "text.en, line 1: it has more than 2 tokens; split it, allow more with --max-tokens, or choose --too-long crop or skip",
    ),
    row(
        "translate: a NUL byte on standard input",
        "translate model --output out.de",
        "standard input, line 2: a NUL byte at position 2 of the line: it is not text, or UTF-16; convert the file with iconv, or remove the bytes with tr -d '\\000'",
        put("stdin.txt", b"a\nb\0\n"),
    ),
    row("evaluate: no text", EVALUATE, "text.en is empty", put("text.en", "")),
    row(
        "evaluate: blank lines",
        EVALUATE,
        "text.de has no text: all its 3 lines are blank",
        put("text.de", "\n\n\n"),
    ),
    row(
        "evaluate: a byte that is no UTF-8",
        EVALUATE,
        "text.de, line 2: not UTF-8 (byte 0xff at position 2 of the line); convert the file, for instance with iconv",
        put("text.de", b"a\nb\xff\nc\n"),
    ),
    row(
        "evaluate: a NUL byte",
        EVALUATE,
        "text.en, line 2: a NUL byte at position 2 of the line: it is not text, or UTF-16; convert the file with iconv, or remove the bytes with tr -d '\\000'",
        put("text.en", b"a\nb\0\nc\n"),
    ),
    row(
        "evaluate: something after gzip",
        EVALUATE,
        "text.en is damaged: after the end of its gzip stream comes something else; get or make it again",
        put_gzip("text.en", b"a\nb\nc\n", after=b"xyz"),
    ),
    row(
        "evaluate: a folder",
        EVALUATE.replace("text.en", "corpus"),
        "corpus is a folder; name a file",
    ),
    row("analyze: no text", ANALYZE, "text.en is empty", put("text.en", ""), put("text.de", "")),
    row(
        "analyze: blank lines",
        ANALYZE,
        "text.en has no text: all its 3 lines are blank",
        put("text.en", "\n\n\n"),
        put("text.de", "\n\n\n"),
    ),
    row(
        "analyze: a byte that is no UTF-8",
        ANALYZE,
        "text.en, line 2: not UTF-8 (byte 0xff at position 2 of the line); convert the file, for instance with iconv",
        put("text.en", b"a\nb\xff\nc\n"),
    ),
    row(
        "analyze: a line of 2 MB",
        ANALYZE,
        "text.en, line 2: it has more than 1,048,576 bytes, the most a line may have; give text with one sentence per line",
        put("text.en", "a\n" + "x" * 2_000_000 + "\nc\n"),
    ),
    row(
        "analyze: one more line",
        ANALYZE,
        "text.en has 4 lines, text.de has 3: line n of one must be the translation of line n of the other",
        append("text.en", b"more\n"),
    ),
    row(
        "analyze: a table without tabs",
        "analyze model --source text.en --out report",
        "text.en, line 1: no tab; every line needs a source, a tab and a target",
    ),
    row(
        "analyze: a folder",
        ANALYZE.replace("text.de", "corpus"),
        "--target corpus is a folder; name a file",
    ),
    row(
        "analyze: no such file",
        ANALYZE.replace("text.de", "none"),
        "--target none: there is no such file",
    ),
    row(
        "analyze: too long, and that is an error",
        ANALYZE + " --max-tokens 2 --too-long error",
        "all 3 pairs have more than 2 tokens on a side: give one sentence per line, or allow more with --max-tokens",
    ),
    row(
        "analyze: all pairs too long",
        ANALYZE + " --max-tokens 1",
        "all 3 pairs have more than 1 token on a side: give one sentence per line, or allow more with --max-tokens",
    ),
    row(
        "a folder with the name of a text",
        PREPARE,
        "text.en (train) is a folder; name a file",
        lambda f: (f / "text.en").unlink(),
        make_folder("text.en"),
    ),
)
