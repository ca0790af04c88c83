"""`relakit filter`: scores of another text, cuts that are none, calibrations and folders."""

import hashlib
import json

from fault_rows import Row, make_folder, overwrite, put, put_gzip, replace, row, usage

PAIRS = "--source text.en --target text.de"
FILTER = f"filter model {PAIRS} --output out"
SCORED = f"filter --scores scores.tsv {PAIRS} --output out"
NAMES = "line\tcross_entropy\tsource_words\ttarget_words\tword_ratio\tcharacter_ratio\tdual_cross_entropy\n"
ROWS_OF_TEXT = ("1\t2.5\t2\t2\t1\t1\t\n", "2\t3.5\t2\t2\t1\t1\t\n", "3\t4.5\t2\t2\t1\t1\t\n")
SCORES = NAMES + "".join(ROWS_OF_TEXT)
RECEIPT = {
    "format": "relakit-receipt",
    "version": 1,
    "facts": {"the text of the input": "0" * 64},
    "pairs": 3,
    "counts": {},
    "sha256": hashlib.sha256(SCORES.encode()).hexdigest(),
}

AGAIN = "score this text with relakit score, or leave --scores out"
KNOWN = (
    "probability, null_rate, alignment_null_rate, attention_mass, unsupported_words, unsupported_share, uncovered_words, cross_entropy, "
    "worst_loss, worst_span_loss, end_loss, reverse_cross_entropy, reverse_worst_span_loss, dual_cross_entropy, "
    "same_words, word_ratio, character_ratio, source_language, target_language"
)

ROWS: tuple[Row, ...] = (
    usage("no output", f"filter model {PAIRS} --keep 0.5", "Missing option '--output'"),
    row(
        "no such model",
        f"filter none {PAIRS} --keep 0.5 --output out",
        "none is no model directory: there is no such folder",
    ),
    row(
        "a weight that is no number",
        f"{FILTER} --keep 0.5",
        ".../model computes NaN or infinity in pair 1: its weights are broken, or its training has diverged; make a model of earlier checkpoints with relakit average, or train again with a lower learning rate",
        overwrite("model/model.safetensors", -4, b"\x00\x00\xc0\x7f"),
    ),
    row(
        "neither a model nor scores",
        f"filter {PAIRS} --keep 0.5 --output out",
        "name a MODEL to score the pairs with, or their scores with --scores",
    ),
    row(
        "no cut",
        FILTER,
        "say which pairs to keep: a share of them (--keep 0.8), those up to a threshold (--threshold), or by a probability (--calibrate)",
    ),
    row(
        "too large a share",
        f"{FILTER} --keep 1.5",
        "--keep is a share of the pairs, above 0 and at most 1, got 1.5",
    ),
    row(
        "a share of 0",
        f"{FILTER} --keep 0",
        "--keep is a share of the pairs, above 0 and at most 1, got 0",
    ),
    row(
        "two cuts",
        f"{FILTER} --keep 0.5 --threshold 4",
        "--keep and --threshold exclude each other; give one of them",
    ),
    row(
        "a threshold that is NaN",
        f"{FILTER} --threshold nan",
        "--threshold must be a number, got nan",
    ),
    row(
        "an unknown column",
        f"{FILTER} --keep 0.5 --by charm",
        f"unknown --by 'charm'; choose one of {KNOWN}",
    ),
    row(
        "a probability of nothing",
        f"{FILTER} --keep 0.5 --by probability",
        "--by probability needs a calibration: --calibrate, or --calibration",
    ),
    row(
        "a probability above 1",
        f"{FILTER} --calibrate --threshold 2",
        "--threshold 2 is a probability here, above 0 and below 1",
    ),
    row(
        "a ratio below 1",
        f"{SCORED} --by word_ratio --threshold 0.5",
        "--threshold 0.5 is how many times longer or shorter than usual a word_ratio may be, so it must be at least 1",
        put("scores.tsv", SCORES),
    ),
    row(
        "clean pairs for nothing",
        f"{FILTER} --keep 0.5 --clean text.en text.de",
        "--clean is for --calibrate; leave it out, or give that too",
    ),
    row(
        "scoring without a model",
        f"{SCORED} --keep 0.5 --max-tokens 5",
        "--max-tokens is about scoring pairs, which needs a MODEL; leave it out, or give that too",
        put("scores.tsv", SCORES),
    ),
    row(
        "workers without a model",
        f"{SCORED} --keep 0.5 --workers 2",
        "--workers is about scoring pairs, which needs a MODEL; leave it out, or give that too",
        put("scores.tsv", SCORES),
    ),
    row(
        "shards without a model",
        f"{SCORED} --keep 0.5 --shard-pairs 9",
        "--shard-pairs is about scoring pairs, which needs a MODEL; leave it out, or give that too",
        put("scores.tsv", SCORES),
    ),
    row(
        "scoring again without a model",
        f"{SCORED} --keep 0.5 --restart",
        "--restart is about scoring pairs, which needs a MODEL; leave it out, or give that too",
        put("scores.tsv", SCORES),
    ),
    row(
        "calibrating without a model",
        f"{SCORED} --calibrate",
        "--calibrate scores planted noise, and needs a MODEL for that",
        put("scores.tsv", SCORES),
    ),
    row(
        "a model with nothing to do",
        f"filter model --scores scores.tsv {PAIRS} --keep 0.5 --output out",
        "MODEL has nothing to do: --scores has the scores already, and nothing is to be calibrated; leave one of them out",
        put("scores.tsv", SCORES),
    ),
    row(
        "two calibrations",
        f"{FILTER} --calibrate --calibration calibration.json",
        "--calibrate fits a calibration, --calibration uses one that was fitted; give one of them",
        put("calibration.json", "{}"),
    ),
    row(
        "no calibration",
        f"{FILTER} --calibration model/config.json",
        'model/config.json is no calibration: it has no "format": "relakit-calibration"; relakit filter --calibrate writes one',
    ),
    row(
        "too few pairs to calibrate on",
        f"filter model --scores scores.tsv {PAIRS} --calibrate --output out",
        "scores.tsv: 0 pairs of 3 could be clean, repetitions left out, and calibrating needs at least 200; name clean pairs with --clean SOURCE TARGET, or cut by --keep or --threshold without --calibrate",
        put("scores.tsv", SCORES),
    ),
    row(
        "too few clean pairs",
        f"filter model --scores scores.tsv {PAIRS} --calibrate --clean text.en text.de --output out",
        "--clean text.en: it has 0 pairs of 3 words or more on each side, repetitions left out, and calibrating needs at least 200",
        put("scores.tsv", SCORES),
    ),
    row(
        "few pairs asked for",
        f"{FILTER} --calibrate --calibration-pairs 50",
        "--calibration-pairs must be at least 200, got 50",
    ),
    row(
        "all is noise",
        f"{FILTER} --calibrate --expected-noise 1",
        "--expected-noise must be above 0 and below 1, got 1",
    ),
    row("no such scores", f"{SCORED} --keep 0.5", "scores.tsv: there is no such file"),
    row("empty scores", f"{SCORED} --keep 0.5", "scores.tsv is empty", put("scores.tsv", "")),
    row(
        "something else for scores",
        f"filter --scores pairs.tsv {PAIRS} --keep 0.5 --output out",
        "pairs.tsv has no column called 'line', so it is no table of relakit score; its columns are 'the dog', 'der Hund'",
    ),
    row(
        "truncated scores",
        f"{SCORED} --keep 0.5",
        "scores.tsv is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("scores.tsv", SCORES.encode(), cut=9),
    ),
    row(
        "scores of fewer pairs",
        f"{SCORED} --keep 0.5",
        f"scores.tsv has scores of 2 pairs, text.en has 3: they are of another text; {AGAIN}",
        put("scores.tsv", NAMES + "".join(ROWS_OF_TEXT[:2])),
    ),
    row(
        "scores of more pairs",
        f"{SCORED} --keep 0.5",
        f"scores.tsv has scores of 4 pairs, text.en has 3: they are of another text; {AGAIN}",
        put("scores.tsv", SCORES + "4\t1\t1\t1\t1\t1\t\n"),
    ),
    row(
        "a row is missing",
        f"{SCORED} --keep 0.5",
        f"scores.tsv, row 2: it is about line 3, and should be about line 2 of text.en: rows are missing, or in another order; {AGAIN}",
        put("scores.tsv", NAMES + ROWS_OF_TEXT[0] + ROWS_OF_TEXT[2]),
    ),
    row(
        "scores of another text",
        f"{SCORED} --keep 0.5",
        f"scores.tsv, row 1: it has scores of 2 and 2 source and target words, line 1 of text.en has 4 and 2: they are of another text; {AGAIN}",
        put("scores.tsv", SCORES),
        replace("text.en", "the dog", "the dog and cat"),
    ),
    row(
        "scores of another text with as many words",
        f"{SCORED} --keep 0.5",
        f"scores.tsv has scores of another text than that of text.en and text.de, as its receipt scores.tsv.json tells; {AGAIN}",
        put("scores.tsv", SCORES),
        put("scores.tsv.json", json.dumps(RECEIPT)),
    ),
    row(
        "a word for a score",
        f"{SCORED} --keep 0.5",
        "scores.tsv, row 2: cross_entropy must be a number, got 'good'",
        put("scores.tsv", SCORES.replace("3.5", "good")),
    ),
    row(
        "a score too many",
        f"{SCORED} --keep 0.5",
        "scores.tsv, row 3: it has 8 columns, the first line names 7",
        put("scores.tsv", SCORES),
        replace("scores.tsv", "3\t4.5", "3\t4.5\t4.5"),
    ),
    row(
        "an empty column",
        f"{SCORED} --keep 0.5 --by dual_cross_entropy",
        "the column dual_cross_entropy of scores.tsv is empty: it needs what the pairs were scored without, such as --reverse, --languages-from or chosen heads; rank --by another",
        put("scores.tsv", SCORES),
    ),
    row(
        "a column that is not there",
        f"{SCORED} --keep 0.5 --by null_rate",
        "scores.tsv has no column called 'null_rate', which --by names",
        put("scores.tsv", SCORES),
    ),
    row(
        "a share that leaves nothing",
        f"{SCORED} --keep 0.1",
        "--keep 0.1 of 3 pairs that can be kept leaves none",
        put("scores.tsv", SCORES),
    ),
    row(
        "the corpus in the output folder",
        "filter model --source data/text.en --target text.de --keep 0.5 --output data",
        "--output data holds --source data/text.en, which would be lost; choose another folder",
        put("data/text.en", "a\nb\nc\n"),
    ),
    row(
        "the model as the output folder",
        f"filter model {PAIRS} --keep 0.5 --output model",
        "--output model is also MODEL model, which would be overwritten; choose another name",
    ),
    row(
        "a folder with something else",
        f"{SCORED} --keep 0.5",
        "out holds 'thesis.tex', which is not part of a filtered corpus and would be lost; choose another folder",
        put("scores.tsv", SCORES),
        put("out/thesis.tex", "x"),
    ),
    row(
        "a folder with somebody's kept pairs",
        f"{SCORED} --keep 0.5",
        "out holds 'kept.en', which is not part of a filtered corpus and would be lost; choose another folder",
        put("scores.tsv", SCORES),
        put("out/kept.en", "x"),
    ),
    row(
        "a file for a folder",
        f"filter --scores scores.tsv {PAIRS} --keep 0.5 --output gold",
        "gold is a file; a filtered corpus needs a folder",
        put("scores.tsv", SCORES),
    ),
    row(
        "a report for a folder",
        f"filter --scores scores.tsv {PAIRS} --keep 0.5 --output out",
        "out holds a report (report.html), which is not part of a filtered corpus and would be lost; choose another folder",
        put("scores.tsv", SCORES),
        put("out/report.html", "x"),
        put("out/analysis.json", "{}"),
    ),
    row(
        "a folder with other scores",
        f"{SCORED} --keep 0.5",
        "out holds other scores (scores.tsv.gz) than --scores scores.tsv, which would be lost; remove them, or choose another folder",
        put("scores.tsv", SCORES),
        put("out/scores.tsv.gz", "x"),
        put("out/filter.json", "{}"),
    ),
    row(
        "a ratio that is none",
        f"{SCORED} --keep 0.5 --by word_ratio",
        "scores.tsv, row 2: word_ratio must be above 0, got '-1'",
        put("scores.tsv", SCORES.replace("2\t3.5\t2\t2\t1", "2\t3.5\t2\t2\t-1")),
    ),
    row(
        "an empty ratio",
        f"{SCORED} --keep 0.5 --by word_ratio",
        "scores.tsv, row 2: the column 'word_ratio' is empty",
        put("scores.tsv", SCORES.replace("2\t3.5\t2\t2\t1", "2\t3.5\t2\t2\t")),
    ),
    row(
        "words without numbers",
        f"{SCORED} --keep 0.5",
        "scores.tsv, row 3: unsupported must be words with their numbers, such as 3:Hund, got 'Hund'",
        put(
            "scores.tsv",
            SCORES.replace("dual_cross_entropy", "unsupported").replace(
                "4.5\t2\t2\t1\t1\t", "4.5\t2\t2\t1\t1\tHund"
            ),
        ),
    ),
    row(
        "scores that are not finished",
        f"{SCORED} --keep 0.5",
        "out holds scores that are not finished (scores.tsv.gz.parts); give the command again that made them, or choose another folder",
        put("scores.tsv", SCORES),
        make_folder("out/scores.tsv.gz.parts"),
    ),
)
