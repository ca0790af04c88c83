"""`relakit analyze`: its options, gold files and tags."""

from fault_rows import Row, append, copy, overwrite, put, put_gzip, remove, row, usage

ANALYZE = "analyze model --source text.en --target text.de --no-translate --out report"
GOLD = f"{ANALYZE} --gold gold"

ROWS: tuple[Row, ...] = (
    usage("no test set", "analyze model --out report", "Missing option '--source'"),
    usage("nowhere to write", "analyze model --source text.en", "Missing option '--out'"),
    row(
        "no such model",
        ANALYZE.replace("model", "none", 1),
        "none is no model directory: there is no such folder",
    ),
    row(
        "a second model that is none",
        f"{ANALYZE} --compare corpus",
        "corpus is no model directory: it has no config.json. `relakit train` writes its models to OUT/model",
    ),
    row(
        "one name for two models",
        f"{ANALYZE} --compare run/model --name a",
        "there are 2 models and 1 name; give one --name for each, or none",
    ),
    row(
        "the same name twice",
        f"{ANALYZE} --compare run/model --name a --name a",
        "--name must differ, got a, a",
    ),
    row(
        "no such source",
        "analyze model --source none --target text.de --out report",
        "--source none: there is no such file",
    ),
    row(
        "a temperature in words",
        f"{ANALYZE} --temperatures 1,warm",
        "--temperatures must be numbers with commas between them, got '1,warm'",
    ),
    row(
        "a temperature of zero",
        f"{ANALYZE} --temperatures 1,0",
        "--temperatures must be numbers above 0 that differ in their first six digits, got '1,0'",
    ),
    row(
        "a temperature twice",
        f"{ANALYZE} --temperatures 1,1",
        "--temperatures must be numbers above 0 that differ in their first six digits, got '1,1'",
    ),
    row(
        "a temperature that is no number",
        f"{ANALYZE} --temperatures nan",
        "--temperatures must be numbers above 0 that differ in their first six digits, got 'nan'",
    ),
    row("a seed below zero", f"{ANALYZE} --seed -1", "--seed must not be negative, got -1"),
    row(
        "a confidence of one",
        f"{ANALYZE} --confidence 1",
        "--confidence must be between 0 and 1, got 1.0",
    ),
    usage(
        "no pairs",
        f"{ANALYZE} --limit 0",
        "Invalid value for '--limit': it must be at least 1, got '0'",
    ),
    row(
        "an unknown way with long pairs",
        f"{ANALYZE} --too-long crop",
        "--too-long must be skip or error, got 'crop'",
    ),
    row(
        "tags twice",
        f"{ANALYZE} --tags tags --tagger xx",
        "--tags and --tagger exclude each other; give one of them",
    ),
    row("no such tags", f"{ANALYZE} --tags none", "--tags none: there is no such file"),
    row(
        "fewer tags than words",
        f"{ANALYZE} --tags tags",
        "tags, line 2: it has 1 tag, the target has 2 words; check how words are split (--tokenized)",
        put("tags", "DET NOUN\nDET\nADJ NOUN\n"),
    ),
    row(
        "fewer lines of tags",
        f"{ANALYZE} --tags tags",
        "text.en has 3 lines, tags has 1: line n of the tags must belong to line n of the other",
        put("tags", "DET NOUN\n"),
    ),
    row(
        "more lines of tags",
        f"{ANALYZE} --tags tags",
        "text.en has 3 lines, tags has 4: line n of the tags must belong to line n of the other",
        append("tags", b"DET\n"),
    ),
    row("no such gold", f"{ANALYZE} --gold none", "--gold none: there is no such file"),
    row(
        "gold that is a folder",
        f"{ANALYZE} --gold corpus",
        "--gold corpus is a folder; name a file",
    ),
    row(
        "an unknown format",
        f"{GOLD} --gold-format giza",
        "unknown format 'giza'; choose one of auto, pharaoh, naacl, talp",
    ),
    usage(
        "words that begin at 2",
        f"{GOLD} --gold-first 2",
        "Invalid value for '--gold-first': it must be at most 1, got '2'",
    ),
    row(
        "gold that is no link",
        GOLD,
        "gold, line 2: '1' is not a link; write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or SOURCEpTARGET for a possible one",
        put("gold", "0-0 1-1\n0-0 1\n0-0\n"),
    ),
    row(
        "gold that is text",
        GOLD,
        "gold, line 1: 'the' is not a link; write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or SOURCEpTARGET for a possible one",
        copy("text.en", "x"),
        put("gold", "the dog\n\n\n"),
    ),
    row(
        "gold with a word below zero",
        GOLD,
        "gold, line 1: '-1-1' is not a link; write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or SOURCEpTARGET for a possible one",
        put("gold", "0-0 -1-1\n\n\n"),
    ),
    row(
        "gold with a word beyond the sentence",
        GOLD,
        "gold, line 2: the link of source word 1 and target word 7 (from 0) is out of range, the target has 2 words; check where the links' numbers start (--gold-first), which side comes first (--gold-reverse) and how words are split (--tokenized)",
        put("gold", "0-0 1-1\n0-0 1-7\n0-0\n"),
    ),
    row(
        "gold the other way round",
        f"{GOLD} --gold-reverse",
        "gold, line 1: the link of source word 0 and target word 2 (from 0) is out of range, the target has 2 words; check where the links' numbers start (--gold-first), which side comes first (--gold-reverse) and how words are split (--tokenized)",
        put("gold", "2-0\n\n\n"),
    ),
    row(
        "gold with a number of thirty digits",
        GOLD,
        "gold, line 1: '0-9999999999...9999999999999' is not a link; write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or SOURCEpTARGET for a possible one",
        put("gold", f"0-{'9' * 30}\n\n\n"),
    ),
    row(
        "gold from 0 read from 1",
        f"{GOLD} --gold-first 1",
        "gold, line 1: '0-0' has a word below 1, the number of the first word; if the file counts from 0, say so: --gold-first 0, --links-first 0 or --hypothesis-first 0",
    ),
    row(
        "gold in talp from 0",
        f"{GOLD} --gold-format talp",
        "gold, line 1: '0-0' has a word below 1, the number of the first word; if the file counts from 0, say so: --gold-first 0, --links-first 0 or --hypothesis-first 0",
    ),
    row(
        "fewer lines of gold",
        GOLD,
        "text.en has 3 lines, gold has 1: line n of the links must belong to line n of the other",
        put("gold", "0-0\n"),
    ),
    row(
        "more lines of gold",
        GOLD,
        "text.en has 3 lines, gold has 4: line n of the links must belong to line n of the other",
        append("gold", b"0-0\n"),
    ),
    row(
        "gold of no lines",
        GOLD,
        "text.en has 3 lines, gold has 0: line n of the links must belong to line n of the other",
        put("gold", ""),
    ),
    row(
        "gold of blank lines",
        GOLD,
        "gold has no sure link in 3 pairs: there is nothing to score; give another file, or leave it out",
        put("gold", "\n\n\n"),
    ),
    row(
        "gold that is no UTF-8",
        GOLD,
        "gold, line 2: not UTF-8 (byte 0xff at position 1 of the line); convert the file, for instance with iconv",
        put("gold", b"0-0\n\xff\n\n"),
    ),
    row(
        "gold with a NUL byte",
        GOLD,
        "gold, line 2: a NUL byte at position 4 of the line: it is not text, or UTF-16; convert the file with iconv, or remove the bytes with tr -d '\\000'",
        put("gold", b"0-0\n0-0\0\n\n"),
    ),
    row(
        "half a gzip file of gold",
        GOLD,
        "gold is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("gold", b"0-0\n" * 99, cut=9),
    ),
    row(
        "naacl without a target",
        f"{GOLD} --gold-format naacl",
        "gold, line 2: '1 2' is not a link; write SENTENCE SOURCE TARGET, then S or P for sure or possible",
        put("gold", "1 1 1 S\n1 2\n"),
    ),
    row(
        "naacl with sentence 0",
        f"{GOLD} --gold-format naacl",
        "gold, line 1: it has sentence 0, below 1, the number of the first; if the file counts from 0, say so: --gold-first 0, --links-first 0 or --hypothesis-first 0",
        put("gold", "0 1 1 S\n"),
    ),
    row(
        "naacl with sentence 4 of 3",
        f"{GOLD} --gold-format naacl",
        "text.en has 3 lines, gold has links of sentence 4 (from 1); give the gold links of this source",
        put("gold", "4 1 1 S\n"),
    ),
    row(
        "naacl with sentence 999,999,999",
        f"{GOLD} --gold-format naacl",
        "gold, line 1: it has sentence 999,999,999; there may be 10,000,000 at most",
        put("gold", "999999999 1 1 S\n"),
    ),
    row(
        "naacl with sentence 9,999,999 of 3",
        f"{GOLD} --gold-format naacl",
        "text.en has 3 lines, gold has links of sentence 9,999,999 (from 1); give the gold links of this source",
        put("gold", "9999999 1 1 S\n"),
    ),
    row(
        "naacl with an unknown kind",
        f"{GOLD} --gold-format naacl",
        "gold, line 1: '1 1 1 Q' is not a link; write SENTENCE SOURCE TARGET, then S or P for sure or possible",
        put("gold", "1 1 1 Q\n"),
    ),
    row(
        "pharaoh read as naacl",
        f"{GOLD} --gold-format naacl",
        "gold, line 1: '0-0 1-1' is not a link; write SENTENCE SOURCE TARGET, then S or P for sure or possible",
    ),
    row(
        "an unknown precision",
        f"{ANALYZE} --precision fp8",
        "unknown precision 'fp8'; choose one of fp32, bf16, int8, auto",
    ),
    row(
        "no model directory to compare",
        f"{ANALYZE} --compare none",
        "none is no model directory: there is no such folder",
    ),
    row(
        "a model with a weight that is no number",
        ANALYZE,
        "model computes NaN or infinity: its weights are broken, or its training has diverged; make a model of earlier checkpoints with relakit average, or train again with a lower learning rate",
        overwrite("model/model.safetensors", -4, b"\x00\x00\xc0\x7f"),
    ),
    row(
        "the model without weights",
        ANALYZE,
        "model has no model.safetensors; a model directory needs one",
        remove("model/model.safetensors"),
    ),
)
