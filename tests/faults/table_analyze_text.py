"""`relakit analyze-text`, as far as it comes without transformers: its options, texts and folders."""

from fault_rows import Row, put, row, usage

ANALYZE = "analyze-text hf --text text.en --out report"
HF = put("hf/config.json", '{"model_type": "bert"}')

ROWS: tuple[Row, ...] = (
    usage("no texts", "analyze-text model --out report", "Missing option '--text'"),
    usage("nowhere to write texts", "analyze-text model --text text.en", "Missing option '--out'"),
    row(
        "no such texts",
        ANALYZE.replace("text.en", "none"),
        "--text none: there is no such file",
        HF,
    ),
    row(
        "a folder of texts",
        ANALYZE.replace("text.en", "corpus"),
        "--text corpus: it is a folder",
        HF,
    ),
    row(
        "blank texts",
        ANALYZE,
        "text.en has no text: all its 2 lines are blank",
        HF,
        put("text.en", "\n \n"),
    ),
    row("an empty file of texts", ANALYZE, "text.en is empty", HF, put("text.en", "")),
    row(
        "texts in Latin-1",
        ANALYZE,
        "text.en, line 2: not UTF-8 (byte 0xfc at position 2 of the line); convert the file, for instance with iconv",
        HF,
        put("text.en", b"a\nf\xfcr\n"),
    ),
    row(
        "a name of the hub",
        ANALYZE,
        "hf is no folder; give one that save_pretrained wrote: nothing is downloaded",
    ),
    row(
        "a folder without a model",
        ANALYZE.replace("hf", "corpus", 1),
        "corpus has no config.json: it holds no model that save_pretrained wrote",
    ),
    row(
        "a translation model",
        ANALYZE.replace("hf", "model", 1),
        "model holds a translation model of relakit, which `relakit analyze` is for",
    ),
    row(
        "a config of something else",
        ANALYZE,
        "hf holds no Hugging Face model",
        put("hf/config.json", "[1]"),
    ),
    row(
        "a second model that is no folder",
        f"{ANALYZE} --compare none",
        "none is no folder; give one that save_pretrained wrote: nothing is downloaded",
        HF,
    ),
    row(
        "the model as output",
        "analyze-text hf --text text.en --out hf",
        "--out hf is also MODEL hf, which would be overwritten; choose another name",
        HF,
    ),
    row(
        "a temperature in words, of texts",
        f"{ANALYZE} --temperatures warm",
        "--temperatures must be numbers with commas between them, got 'warm'",
        HF,
    ),
    row(
        "no tokenizer there",
        f"{ANALYZE} --tokenizer none",
        "--tokenizer none: there is no such folder",
        HF,
    ),
)
