"""`relakit prepare`: its options, its folder and its files; `table_texts` has broken text files."""

from fault_rows import Row, append, copy, make_folder, put, put_gzip, remove, row, usage

FOLDER = "--folder corpus --source-lang en --target-lang de --vocab-size 300"
FILES = "--train text.en text.de --vocab-size 300"

ROWS: tuple[Row, ...] = (
    usage("nothing to write to", "prepare", "Missing argument 'OUT'"),
    usage("an unknown option", "prepare out --vocabulary 300", "No such option: --vocabulary"),
    usage(
        "one file of a pair",
        "prepare out --train text.en",
        "Option '--train' requires 2 arguments.",
    ),
    usage(
        "a size in words",
        f"prepare out {FOLDER} --vocab-size many",
        "Invalid value for '--vocab-size': it must be a whole number, got 'many'",
    ),
    row(
        "no corpus",
        "prepare out",
        "name the corpus: --train SOURCE TARGET, --train-tsv FILE or --folder",
    ),
    row(
        "two corpora",
        f"prepare out {FOLDER} --train text.en text.de",
        "--folder and --train exclude each other; give one of them",
    ),
    row(
        "a pair and a table",
        f"prepare out {FILES} --train-tsv pairs.tsv",
        "--train and --train-tsv exclude each other; give one of them",
    ),
    row(
        "a folder without languages",
        "prepare out --folder corpus",
        "--folder needs --source-lang and --target-lang, the endings of its files",
    ),
    row(
        "a folder with one language",
        "prepare out --folder corpus --source-lang en",
        "--folder needs --source-lang and --target-lang, the endings of its files",
    ),
    row(
        "the same language twice",
        "prepare out --folder corpus --source-lang en --target-lang en",
        "source and target language are both 'en'; name two of them",
    ),
    row(
        "a folder that is not there",
        "prepare out --folder none --source-lang en --target-lang de",
        "none: there is no such folder",
    ),
    row(
        "a file for a folder",
        "prepare out --folder text.en --source-lang en --target-lang de",
        "text.en is a file; name the folder that train.en is in",
    ),
    row(
        "a language that is not there",
        "prepare out --folder corpus --source-lang fr --target-lang de",
        "corpus/train.de exists, but no train.fr (plain, .gz or .zst); add it, or name the files one by one",
    ),
    row(
        "training text in one language",
        f"prepare out {FOLDER}",
        "corpus/train.en exists, but no train.de (plain, .gz or .zst); add it, or name the files one by one",
        remove("corpus/train.de"),
    ),
    row(
        "validation text in one language",
        f"prepare out {FOLDER}",
        "corpus/valid.en exists, but no valid.de (plain, .gz or .zst); add it, or name the files one by one",
        remove("corpus/valid.de"),
    ),
    row(
        "two validation sets",
        f"prepare out {FOLDER}",
        "corpus has several validation sets: valid, dev; name the files one by one",
        copy("corpus/valid.en", "corpus/dev.en"),
        copy("corpus/valid.de", "corpus/dev.de"),
    ),
    row(
        "two test sets with the same name but for a dot",
        f"prepare out {FOLDER}",
        "corpus/test.a.en and test_a.en would both be the split 'test_a'; rename one of them, or name the files one by one",
        *(copy("corpus/valid.en", f"corpus/{name}.en") for name in ("test.a", "test_a")),
        *(copy("corpus/valid.de", f"corpus/{name}.de") for name in ("test.a", "test_a")),
    ),
    row(
        "a file plain and packed",
        f"prepare out {FOLDER}",
        "corpus/train.en and train.en.gz both exist; remove one of them",
        put_gzip("corpus/train.en.gz", b"a\n"),
    ),
    row(
        "no such source", "prepare out --train none text.de", "none (train): there is no such file"
    ),
    row(
        "no such target", "prepare out --train text.en none", "none (train): there is no such file"
    ),
    row(
        "no such validation file",
        f"prepare out {FILES} --valid text.en none",
        "none (valid): there is no such file",
    ),
    row("no such table", "prepare out --train-tsv none", "none (train): there is no such file"),
    row(
        "a folder for a file",
        "prepare out --train corpus text.de",
        "corpus (train) is a folder; name a file",
    ),
    row(
        "one more line",
        f"prepare out {FILES}",
        "text.en has 3 lines, text.de has 4: line n of one must be the translation of line n of the other",
        append("text.de", b"zu viel\n"),
    ),
    row(
        "one line fewer",
        f"prepare out {FILES}",
        "text.en has 3 lines, text.de has 2: line n of one must be the translation of line n of the other",
        put("text.de", "der Hund\nein Haus\n"),
    ),
    row(
        "one more line of validation",
        f"prepare out {FILES} --valid text.en text.de",
        "text.en has 3 lines, text.de has 4: line n of one must be the translation of line n of the other",
        put("text.de", "a\nb\nc\nd\n"),
    ),
    row(
        "a table without tabs",
        "prepare out --train-tsv text.en",
        "text.en, line 1: no tab; every line needs a source, a tab and a target",
    ),
    row(
        "all pairs too long",
        f"prepare out {FILES} --max-tokens 1",
        "no pair of train is left: of 3 pairs in text.en, 0 have an empty side and 3 have more than 1 token; give other files, or a larger max_tokens",
    ),
    row(
        "a vocabulary of 10",
        "prepare out --train text.en text.de --vocab-size 10",
        "vocab_size must be at least 260 (4 special tokens and 256 bytes), got 10",
    ),
    row(
        "a vocabulary of nothing",
        "prepare out --train text.en text.de --vocab-size -1",
        "vocab_size must be at least 260 (4 special tokens and 256 bytes), got -1",
    ),
    row(
        "a vocabulary of a billion",
        "prepare out --train text.en text.de --vocab-size 1000000000",
        "vocab_size must be at most 1,000,000, got 1,000,000,000",
    ),
    row("no tokens", f"prepare out {FILES} --max-tokens 0", "max_tokens must be at least 1, got 0"),
    row(
        "one line to learn from",
        f"prepare out {FILES} --sample-lines 1",
        "sample_lines must be at least 2, got 1",
    ),
    row(
        "lines below zero",
        f"prepare out {FILES} --sample-lines -5",
        "sample_lines must be at least 2, got -5",
    ),
    row(
        "a tokenizer and a size",
        f"prepare out {FILES} --tokenizer tokenizer.json",
        "--vocab-size is for learning a tokenizer; leave it or --tokenizer out",
    ),
    row(
        "a tokenizer and lines to learn from",
        "prepare out --train text.en text.de --sample-lines 5 --tokenizer tokenizer.json",
        "--sample-lines is for learning a tokenizer; leave it or --tokenizer out",
    ),
    row(
        "only a validation set",
        "prepare out --valid text.en text.de --vocab-size 300",
        "the tokenizer is learned from train: give a split train or a tokenizer",
    ),
    row(
        "a language with a slash",
        "prepare out --folder corpus --source-lang ../corpus/train.en --target-lang de",
        "corpus/train.de exists, but no train.../corpus/train.en (plain, .gz or .zst); add it, or name the files one by one",
    ),
    row(
        "an empty language",
        "prepare out --train text.en text.de --vocab-size 300 --source-lang= --target-lang=de",
        "a language needs a name, such as en; got an empty one",
    ),
    row(
        "a corpus is there",
        f"prepare prepared {FILES}",
        "prepared holds a prepared corpus already; --force replaces it, or choose another folder",
    ),
    row(
        "OUT is a file",
        f"prepare text.en {FILES}",
        "the folder text.en is also the source of train text.en, which would be overwritten; choose another name",
    ),
    row(
        "OUT is the corpus itself",
        f"prepare corpus {FOLDER}",
        "the folder corpus holds the source of train corpus/train.en, which would be lost; choose another folder",
    ),
    row(
        "OUT is the corpus itself, by force",
        f"prepare corpus {FOLDER} --force",
        "the folder corpus holds the source of train corpus/train.en, which would be lost; choose another folder",
    ),
    row(
        "OUT is a model",
        f"prepare model {FILES} --force",
        "model holds a model directory (config.json), which is not part of a prepared corpus and would be lost; choose another folder",
    ),
    row(
        "OUT is a run",
        f"prepare run {FILES} --force",
        "run holds a training run (recipe.json), which is not part of a prepared corpus and would be lost; choose another folder",
    ),
    row(
        "OUT holds a letter",
        f"prepare out {FILES} --force",
        "out holds 'letter.txt', which is not part of a prepared corpus and would be lost; choose another folder",
        put("out/letter.txt", "Dear ..."),
    ),
    row(
        "OUT is below a file",
        f"prepare text.en/out {FILES}",
        "text.en/out cannot be written: text.en is a file, not a folder; choose another place",
    ),
    row(
        "OUT is being written by another",
        f"prepare out {FILES}",
        "out holds 'x', which is not part of a prepared corpus and would be lost; choose another folder",
        make_folder("out"),
        put("out/x", ""),
    ),
)
