"""Links and markup of `relakit translate`."""

from fault_rows import Row, put, row, set_json

TRANSLATE = "translate model --input text.en --output out.de"
CHOICE = '{"layer": 0, "heads": [0, 1], "reading": "normal", "chosen": {"by": "given"}}'
CHOOSE = "choose them with relakit align model --select --source FILE --target FILE"
WHERE = "model/alignment.json"

ROWS: tuple[Row, ...] = (
    row(
        "links of a model whose heads nobody chose",
        f"{TRANSLATE} --alignment",
        f"model does not say which heads align; {CHOOSE}",
    ),
    row(
        "markup and a model whose heads nobody chose",
        f"{TRANSLATE} --keep-markup",
        f"model does not say which heads align; {CHOOSE}",
    ),
    row(
        "a choice of heads that is no JSON",
        f"{TRANSLATE} --alignment",
        "model/alignment.json is no JSON file: ...",
        put(WHERE, CHOICE[:20]),
    ),
    row(
        "a choice of heads of a deeper model",
        f"{TRANSLATE} --alignment",
        "model/alignment.json: there is no layer 6; the decoder has 1 of them, counted from 1",
        put(WHERE, CHOICE),
        set_json(WHERE, "layer", 5),
    ),
    row(
        "a choice of heads of a wider model",
        f"{TRANSLATE} --keep-markup",
        "model/alignment.json: there is no head 8; each layer has 2 of them, counted from 1",
        put(WHERE, CHOICE),
        set_json(WHERE, "heads", [7]),
    ),
    row(
        "a choice of no heads",
        f"{TRANSLATE} --keep-markup",
        "model/alignment.json: heads ...; choose again with relakit align --select",
        put(WHERE, CHOICE),
        set_json(WHERE, "heads", []),
    ),
    row(
        "links of a layer that is no JSON",
        f"{TRANSLATE} --alignment",
        "model/aligner.json is no JSON file: ...",
        put("model/aligner.json", "{"),
    ),
    row(
        "links between letters",
        f"{TRANSLATE} --alignment --alignment-level letter",
        "unknown --alignment-level 'letter'; choose one of word, token",
    ),
    row(
        "what is linked, but no links",
        f"{TRANSLATE} --alignment-level token",
        "--alignment-level is for --alignment; add that, or leave it out",
    ),
    row(
        "links of words with markup around them",
        f"{TRANSLATE} --alignment --keep-markup",
        "--alignment numbers words without markup, so with --keep-markup it needs --format json, which has both sides without it; add that, or leave one of both out",
    ),
    row(
        "another format",
        f"{TRANSLATE} --format xml",
        "unknown --format 'xml'; choose one of text, json",
    ),
    row(
        "markup in a line that is no UTF-8",
        f"{TRANSLATE} --keep-markup",
        "text.en, line 2: not UTF-8 (byte 0xff at position 4 of the line); convert the file, for instance with iconv",
        put(WHERE, CHOICE),
        put("text.en", b"a\n<b>\xff</b>\n"),
    ),
    row(
        "markup around a line that is too long",
        f"{TRANSLATE} --keep-markup --max-tokens 3 --too-long error",
        "text.en, line 1: it has more than 3 tokens; split it, allow more with --max-tokens, or choose --too-long crop or skip",
        put(WHERE, CHOICE),
        put("text.en", "<b>one two three four five six</b>\n"),
    ),
)
