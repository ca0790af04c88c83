"""Where commands write to."""

from fault_rows import Row, copy, link, make_folder, put, row, usage

TRANSLATE = "translate model --input text.en --output"
ANALYZE = "analyze model --source text.en --target text.de --no-translate --out"
EVALUATE = "evaluate model --source text.en --reference text.de --output"

ROWS: tuple[Row, ...] = (
    row(
        "translate: the input",
        f"{TRANSLATE} text.en",
        "--output text.en is also --input text.en, which would be overwritten; choose another name",
    ),
    row(
        "translate: a link to the input",
        f"{TRANSLATE} out.de",
        "--output out.de is also --input text.en, which would be overwritten; choose another name",
        link("out.de", "text.en"),
    ),
    row(
        "translate: a folder",
        f"{TRANSLATE} corpus",
        "corpus cannot be written: it is a folder; name a file",
    ),
    row(
        "translate: the model",
        f"{TRANSLATE} model",
        "model cannot be written: it is a folder; name a file",
    ),
    row(
        "translate: a part of the model",
        f"{TRANSLATE} model/config.json",
        "--output model/config.json is a part of MODEL model, which would be damaged; choose another name",
    ),
    row(
        "translate: below a file",
        f"{TRANSLATE} text.de/out",
        "text.de/out cannot be written: text.de is a file, not a folder; choose another place",
    ),
    row(
        "translate: a link in a circle",
        f"{TRANSLATE} loop",
        "loop cannot be written: its symbolic links lead in a circle; remove them",
        link("loop", "loop"),
    ),
    row(
        "translate: a name of 300 letters",
        f"{TRANSLATE} {'x' * 300}",
        "xxx...: its name is too long; choose a shorter one",
    ),
    row(
        "evaluate: the source",
        f"{EVALUATE} text.en",
        "--output text.en is also --source text.en, which would be overwritten; choose another name",
    ),
    row(
        "evaluate: the reference",
        f"{EVALUATE} text.de",
        "--output text.de is also --reference text.de, which would be overwritten; choose another name",
    ),
    row(
        "evaluate: a folder",
        f"{EVALUATE} corpus",
        "corpus cannot be written: it is a folder; name a file",
    ),
    row(
        "evaluate: below a file",
        f"{EVALUATE} text.en/out",
        "text.en/out cannot be written: text.en is a file, not a folder; choose another place",
    ),
    row(
        "evaluate: without a model",
        "evaluate --hypothesis text.en --reference text.de --output x",
        "--output keeps a model's translations; name a MODEL",
    ),
    row("analyze: a file", f"{ANALYZE} tags", "tags is a file; a report needs a folder"),
    row(
        "analyze: an input",
        f"{ANALYZE} text.en",
        "--out text.en is also --source text.en, which would be overwritten; choose another name",
    ),
    row(
        "analyze: the model",
        f"{ANALYZE} model",
        "--out model is also MODEL model, which would be overwritten; choose another name",
    ),
    row(
        "analyze: a prepared corpus",
        f"{ANALYZE} prepared",
        "prepared holds a prepared corpus (corpus.json), which is not part of a report and would be lost; choose another folder",
    ),
    row(
        "analyze: a run",
        f"{ANALYZE} run",
        "run holds a training run (recipe.json), which is not part of a report and would be lost; choose another folder",
    ),
    row(
        "analyze: a folder with a letter",
        f"{ANALYZE} out",
        "out holds 'letter.txt', which is not part of a report and would be lost; choose another folder",
        put("out/report.html", "x"),
        put("out/letter.txt", "Dear ..."),
    ),
    row(
        "analyze: below a file",
        f"{ANALYZE} tags/out",
        "tags/out cannot be written: tags is a file, not a folder; choose another place",
    ),
    row(
        "generate: a file",
        "generate text.en --pairs 3",
        "text.en is a file; a generated corpus needs a folder",
    ),
    row(
        "generate: a corpus that is there",
        "generate corpus --pairs 3",
        "corpus holds a generated corpus already; --force replaces it, or choose another folder",
    ),
    row(
        "generate: a model",
        "generate model --pairs 3 --force",
        "model holds a model directory (config.json), which is not part of a generated corpus and would be lost; choose another folder",
    ),
    row(
        "generate: a folder with a letter",
        "generate out --pairs 3 --force",
        "out holds 'letter.txt', which is not part of a generated corpus and would be lost; choose another folder",
        copy("corpus", "out"),
        put("out/letter.txt", "Dear ..."),
    ),
    row(
        "generate: below a file",
        "generate text.en/out --pairs 3",
        "text.en/out cannot be written: text.en is a file, not a folder; choose another place",
    ),
    usage(
        "bench: a file",
        "bench attention --quick --out text.en",
        "Invalid value for '--out': dir 'text.en' is a file.",
    ),
    row(
        "bench: nothing to resume",
        "bench attention --quick --resume",
        "--resume needs --out, the directory of the run to continue",
    ),
    row(
        "bench: results that are none",
        "bench attention --quick --out out --resume",
        "out/results.json is not a benchmark result: it is no JSON, or is truncated; remove it, or choose another place for the results",
        put("out/results.json", "{"),
    ),
    row(
        "reproduce: results in a file",
        "reproduce table4 --results text.en --runs runs --data data",
        "text.en/README.md cannot be written: text.en is a file, not a folder; choose another place",
        make_folder("data"),
    ),
)
