"""`relakit train-aligner`, and alignment layers in model directories."""

from fault_rows import Row, pipe, put, row, usage

TRAIN = "train-aligner model --source text.en --target text.de"
AGAIN = "train it again with relakit train-aligner, or delete it"
LAYER = (
    '{"format": 1, "dim": 16, "model_sha256": "0", "layer_sha256": "0", "trained": {"by": "links", '
    '"pairs": 1, "epochs": 1, "seed": 1, "scores": {"pairs": 1, "loss": 1, "against": "gold"}}}'
)
ALIGN = "align model --source text.en --target text.de --output links"
CHOICE = '{"layer": 0, "heads": [0], "reading": "normal", "chosen": {"by": "aer"}}'

ROWS: tuple[Row, ...] = (
    usage("no pairs", "train-aligner model", "Missing option '--source'"),
    usage("no passes", f"{TRAIN} --epochs 0", "Invalid value for '--epochs'"),
    row(
        "no such model",
        TRAIN.replace("model", "none", 1),
        "none is no model directory: there is no such folder",
    ),
    row(
        "a corpus for a model",
        TRAIN.replace("model", "corpus", 1),
        "corpus is no model directory: it has no config.json. `relakit train` writes its models to OUT/model",
    ),
    row("no time", f"{TRAIN} --minutes 0", "--minutes must be above 0, got 0.0"),
    row("no number of minutes", f"{TRAIN} --minutes nan", "--minutes must be above 0, got nan"),
    row(
        "links through a pipe",
        f"{TRAIN} --links pipe --links-format pharaoh",
        "--links pipe is no regular file: links are read twice, which a pipe or a device does not allow; put them into a file, plain, gzip or zstd",
        pipe("pipe"),
    ),
    row(
        "words of another kind",
        f"{TRAIN} --words letters",
        "unknown --words 'letters'; choose one of spaces, punctuation, tokenized",
    ),
    row(
        "two models of one direction",
        f"{TRAIN} --reverse run/model",
        "the models must translate in opposite directions, but the source language of the first is "
        "'en' and the target language of the second is 'de'; train the second with relakit train "
        "RECIPE --reverse",
    ),
    row(
        "only the first of one",
        f"{TRAIN} --only-first",
        "--only-first is about the model of --reverse; give it, too",
    ),
    row(
        "gold of nothing",
        f"{TRAIN} --gold gold",
        "--gold is about the pairs of --valid-source; give these, too",
    ),
    row(
        "how to read no links",
        f"{TRAIN} --links-first 1",
        "--links-first is about the file of --links; give it, too",
    ),
    row(
        "how to read no gold links",
        f"{TRAIN} --gold-format naacl",
        "--gold-format is about the file of --gold; give it, too",
    ),
    row(
        "held out twice",
        f"{TRAIN} --held-out 1 --valid-source text.en --valid-target text.de",
        "--held-out and --valid-source exclude each other; give one",
    ),
    row(
        "links that are given, in many rounds",
        f"{TRAIN} --links gold --rounds 2",
        "--links gold gives the same links in every round; leave --rounds 2 out",
    ),
    row(
        "links to learn from, and none for the exam",
        f"{TRAIN} --links gold --valid-source text.en --valid-target text.de",
        "--links gold tells the links of --source alone, and --valid-source text.en has none; give its links with --gold, or leave --valid-source out",
    ),
    row(
        "a target that is too short",
        TRAIN,
        "text.en has 3 lines, text.de has 1: line n of one must be the translation of line n of "
        "the other",
        put("text.de", "der Hund\n"),
    ),
    row(
        "too few pairs",
        TRAIN,
        "there are 3 pairs, too few to train on; a tenth of them is held out, and that must be one "
        "at least",
        put("model/alignment.json", CHOICE),
    ),
    row(
        "too few links",
        f"{TRAIN} --links gold",
        "gold has no links for text.en, line 2: it must have a line for each pair",
        put("gold", "0-0 1-1\n"),
    ),
    row(
        "a link to a word that is not there",
        f"{TRAIN} --links gold",
        "gold, line 3: the link of source word 5 and target word 0 (from 0) is out of range, the "
        "source has 2 words; check where the links' numbers start (--links-first), which side comes first "
        "(--links-reverse) and how words are split (--words)",
        put("gold", "0-0\n0-0\n5-0\n"),
    ),
    row(
        "no link",
        f"{TRAIN} --links gold --valid-source text.en --valid-target text.de --gold gold",
        "there is no link to learn from in 3 pairs: check that source and target are translations "
        "of each other, and in the model's languages",
        put("gold", "\n\n\n"),
    ),
    row(
        "a layer that learns nothing",
        "train-aligner model --source corpus/train.en --target corpus/train.de --epochs 1",
        "the new layer of model is not kept: in its exam on 6 pairs its alignment error rate is ..., "
        "above 0.5; train on more pairs or for longer, or keep it all the same with --force",
    ),
    row(
        "no such device",
        f"{TRAIN} --device gpu",
        "unknown device 'gpu'; choose cpu or cuda, of several by its number: cuda:1",
    ),
    row(
        "a device that is not there",
        f"{TRAIN} --device cuda:7",
        "device 'cuda:7' cannot be used: ...; choose another, such as 'cpu'",
    ),
    row(
        "a layer that is no JSON",
        ALIGN,
        "model/aligner.json is no JSON file: ...",
        put("model/alignment.json", CHOICE),
        put("model/aligner.json", "{"),
    ),
    row(
        "a layer of a later relakit",
        ALIGN,
        f"model/aligner.json: format = 2: must be 1; {AGAIN}",
        put("model/alignment.json", CHOICE),
        put("model/aligner.json", LAYER.replace('"format": 1', '"format": 2')),
    ),
    row(
        "a layer of another model",
        ALIGN,
        "model/aligner.json is of another model: the SHA-256 of model.safetensors is ..., it says "
        f"0...; {AGAIN}",
        put("model/alignment.json", CHOICE),
        put("model/aligner.json", LAYER),
    ),
)
