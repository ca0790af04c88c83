"""Runs: --out, --resume, checkpoints, `relakit average`, `relakit demo`."""

from fault_rows import Row, cut, overwrite, put, remove, replace, row, set_header, set_json, usage

RESUME = "train --resume --out run"
AVERAGE = "average run --out out"

ROWS: tuple[Row, ...] = (
    row(
        "a run is there",
        "train recipe.toml --out run",
        "run holds a run already; continue it with --resume, or choose another --out",
    ),
    row(
        "--out is a model",
        "train recipe.toml --out model",
        "model holds a model directory (config.json), but no recipe.json of a training run, which needs a folder of its own; choose another --out",
    ),
    row(
        "--out is a prepared corpus",
        "train recipe.toml --out prepared",
        "prepared holds a prepared corpus (corpus.json), but no recipe.json of a training run, which needs a folder of its own; choose another --out",
    ),
    row(
        "--out is a file",
        "train recipe.toml --out text.en",
        "text.en is a file; a training run needs a folder",
    ),
    row(
        "--out is below a file",
        "train recipe.toml --out text.en/run",
        "text.en/run cannot be written: text.en is a file, not a folder; choose another place",
    ),
    row(
        "nothing to resume",
        "train --resume --out none",
        "none has no recipe.json, so there is nothing to resume",
    ),
    row(
        "a folder without a run to resume",
        "train --resume --out corpus",
        "corpus has no recipe.json, so there is nothing to resume",
    ),
    row(
        "resumed with another model",
        f"{RESUME} --set model.dim=32",
        "run was trained with model.dim = 16, the recipe says 32. A resumed run keeps all that decides its updates; use the same values, or choose another --out",
    ),
    row(
        "resumed with another seed",
        f"{RESUME} --set training.seed=2",
        "run was trained with training.seed = 1, the recipe says 2. A resumed run keeps all that decides its updates; use the same values, or choose another --out",
    ),
    row(
        "resumed with two changes",
        f"{RESUME} --set training.seed=2 --set training.warmup=7",
        "run was trained with training.seed = 1, the recipe says 2; training.warmup = 4000, the recipe says 7. A resumed run keeps all that decides its updates; use the same values, or choose another --out",
    ),
    row(
        "resumed in the other direction",
        f"{RESUME} --set training.updates=6 --reverse",
        "run was trained with data.reverse = False, the recipe says True. A resumed run keeps all that decides its updates; use the same values, or choose another --out",
    ),
    row(
        "resumed with an unknown key",
        f"{RESUME} --set training.epoch=7",
        "run/recipe.json: unknown key training.epoch (did you mean epochs?); known are ...",
    ),
    row(
        "the run's recipe is no JSON",
        f"{RESUME} --set training.updates=6",
        "run/recipe.json is no JSON file: expecting property name enclosed in double quotes (line 1, column 2)",
        put("run/recipe.json", "{"),
    ),
    row(
        "the run's recipe is a list",
        RESUME,
        "run/recipe.json is no recipe: it must have keys and values",
        put("run/recipe.json", "[]"),
    ),
    row(
        "the run's recipe lacks a section",
        RESUME,
        "run/recipe.json: data is missing",
        set_json("run/recipe.json", "data", ...),
    ),
    row(
        "the run's recipe is no UTF-8",
        RESUME,
        "run/recipe.json is not UTF-8 (byte 0xff at position 1): it is no file of settings",
        put("run/recipe.json", b"\xff"),
    ),
    row(
        "the run's recipe is a folder",
        RESUME,
        "run/recipe.json is a folder; name a file",
        remove("run/recipe.json"),
        lambda f: (f / "run/recipe.json").mkdir(),
    ),
    row(
        "half a checkpoint",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/weights.safetensors (... bytes) is truncated or no safetensors file; copy or make it again); remove that folder, and --resume continues from the checkpoint before it",
        cut("run/checkpoints/update-0000004/weights.safetensors", 999),
    ),
    row(
        "a checkpoint without moments",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/adam.safetensors is missing); remove that folder, and --resume continues from the checkpoint before it",
        remove("run/checkpoints/update-0000004/adam.safetensors"),
    ),
    row(
        "a checkpoint's state is no JSON",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json is no JSON file: expecting property name enclosed in double quotes (line 1, column 2)); remove that folder, and --resume continues from the checkpoint before it",
        put("run/checkpoints/update-0000004/state.json", "{"),
    ),
    row(
        "a checkpoint's state is a list",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json does not hold the state of a training run); remove that folder, and --resume continues from the checkpoint before it",
        put("run/checkpoints/update-0000004/state.json", "[]"),
    ),
    row(
        "a checkpoint's state has a strange key",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json does not hold the state of a training run); remove that folder, and --resume continues from the checkpoint before it",
        set_json("run/checkpoints/update-0000004/state.json", "x", 1),
    ),
    row(
        "a checkpoint's state has a word for a number",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json: update must be a whole number, got 'four'); remove that folder, and --resume continues from the checkpoint before it",
        set_json("run/checkpoints/update-0000004/state.json", "update", "four"),
    ),
    row(
        "a moment of another shape",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/adam.safetensors: encoder.layers.0.feed_forward.inner.bias.mean has shape (4, 4) instead of (16,)); remove that folder, and --resume continues from the checkpoint before it",
        set_header(
            "run/checkpoints/update-0000004/adam.safetensors",
            lambda header: header["encoder.layers.0.feed_forward.inner.bias.mean"].update(
                shape=[4, 4]
            ),
        ),
    ),
    row(
        "a checkpoint's state is empty",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json: update is missing); remove that folder, and --resume continues from the checkpoint before it",
        put("run/checkpoints/update-0000004/state.json", "{}"),
    ),
    row(
        "a checkpoint's state lacks the corpus",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json: corpus is missing); remove that folder, and --resume continues from the checkpoint before it",
        set_json("run/checkpoints/update-0000004/state.json", "corpus", ...),
    ),
    row(
        "a checkpoint's state has true for a number",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json: seconds must be a number, got True); remove that folder, and --resume continues from the checkpoint before it",
        set_json("run/checkpoints/update-0000004/state.json", "seconds", True),
    ),
    row(
        "a checkpoint's state is of another update",
        f"{RESUME} --set training.updates=6",
        "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/state.json is the state after update 99, and the folder's name says 4); remove that folder, and --resume continues from the checkpoint before it",
        set_json("run/checkpoints/update-0000004/state.json", "update", 99),
    ),
    row(
        "a file of the user's in the run's model",
        f"{RESUME} --set training.updates=6",
        "run/model holds 'notes.txt', which is not part of a model directory and would be lost; move it elsewhere",
        put("run/model/notes.txt", "mine"),
    ),
    row(
        "a file where the run's model will be",
        f"{RESUME} --set training.updates=6",
        "run/model is a file; a model directory needs a folder",
        remove("run/model"),
        put("run/model", "mine"),
    ),
    row(
        "the corpus is gone",
        f"{RESUME} --set training.updates=6",
        "prepared is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
        remove("prepared"),
    ),
    usage("average: nowhere to write", "average run", "Missing option '--out'"),
    usage(
        "average: none of the last",
        f"{AVERAGE} --last 0",
        "Invalid value for '--last': it must be at least 1, got '0'",
    ),
    row(
        "average: no run",
        "average none --out out",
        "none is no training run: it has no recipe.json",
    ),
    row(
        "average: a model for a run",
        "average model --out out",
        "model is no training run: it has no recipe.json",
    ),
    row(
        "average: a file for a run",
        "average text.en --out out",
        "text.en is no training run: it has no recipe.json",
    ),
    row(
        "average: more than there are",
        f"{AVERAGE} --last 9",
        "run has 2 checkpoints, so the last 9 cannot be taken; take fewer",
    ),
    row(
        "average: an unknown checkpoint",
        f"{AVERAGE} update-0000009",
        "there is no checkpoint 'update-0000009', neither in run/checkpoints nor as a folder (update-0001200 or interrupted-0001234); there are: update-0000002, update-0000004",
    ),
    row(
        "average: an unknown update",
        f"{AVERAGE} 9",
        "there is no checkpoint '9', neither in run/checkpoints nor as a folder (update-0001200 or interrupted-0001234); there are: update-0000002, update-0000004",
    ),
    row(
        "average: a folder that is no checkpoint",
        f"{AVERAGE} corpus",
        "corpus is no checkpoint: it has no state.json and weights.safetensors",
    ),
    row(
        "average: checkpoints and --last",
        f"{AVERAGE} 2 --last 1",
        "name the checkpoints or say how many of the last; not both",
    ),
    row(
        "average: no checkpoints",
        AVERAGE,
        "run has no checkpoints yet; name some, or let it train",
        remove("run/checkpoints"),
    ),
    row(
        "average: half a checkpoint",
        AVERAGE,
        "run/checkpoints/update-0000002/weights.safetensors (... bytes) is truncated or no safetensors file; copy or make it again",
        cut("run/checkpoints/update-0000002/weights.safetensors", 999),
    ),
    row(
        "average: a checkpoint with a broken state",
        AVERAGE,
        "run/checkpoints/update-0000004/state.json does not hold the state of a training run",
        put("run/checkpoints/update-0000004/state.json", "[]"),
        remove("run/model"),
    ),
    row(
        "average: another corpus for two vocabularies",
        AVERAGE,
        "prepared/tokenizer.json is of another corpus than run was trained on; put the corpus that it was trained on back into prepared",
        overwrite("prepared/train.target.tokens", 0, b"\x09\x01"),
        replace("run/recipe.json", '"vocabulary": "joint"', '"vocabulary": "separate"'),
        remove("run/model"),
    ),
    row(
        "average: no tokenizers for two vocabularies",
        AVERAGE,
        "the tokenizer of run is not where it was, in prepared/tokenizer.json; put the corpus that it was trained on back into prepared",
        remove("prepared"),
        replace("run/recipe.json", '"vocabulary": "joint"', '"vocabulary": "separate"'),
        remove("run/model"),
    ),
    row(
        "average: a checkpoint without weights",
        AVERAGE,
        "run/checkpoints/update-0000002/weights.safetensors is missing",
        remove("run/checkpoints/update-0000002/weights.safetensors"),
    ),
    row(
        "average: no tokenizer",
        AVERAGE,
        "the tokenizer of run is not where it was, in prepared/tokenizer.json; name the run's tokenizer with --tokenizer",
        remove("prepared"),
        remove("run/model"),
    ),
    row(
        "average: a tokenizer that is none",
        f"{AVERAGE} --tokenizer text.en",
        "text.en is not a tokenizer, or is truncated: expecting value (line 1, column 1); copy or make it again",
    ),
    row(
        "average: a tokenizer that is not there",
        f"{AVERAGE} --tokenizer none",
        "none: there is no such file",
    ),
    row(
        "average: --out is the run",
        "average run --out run",
        "--out run is also RUN run, which would be overwritten; choose another name",
    ),
    row(
        "average: --out is a model",
        "average run --out model",
        "model holds a model directory already; --force replaces it, or choose another folder",
    ),
    row(
        "average: --out is a file",
        "average run --out text.en",
        "text.en is a file; a model directory needs a folder",
    ),
    row(
        "average: --out is a corpus",
        "average run --out corpus --force",
        "corpus holds a generated corpus (generated.json), which is not part of a model directory and would be lost; choose another folder",
    ),
    row(
        "average: another recipe",
        AVERAGE,
        "the checkpoints are not of the model in run/recipe.json: decoder.layers.0.attention.key_value.bias has shape (32,) in them, and (64,) in that model; put back the recipe that was there",
        set_json("run/recipe.json", "model.dim", 32),
    ),
    usage("demo: an unknown option", "demo --epochs 3", "No such option: --epochs"),
    row(
        "demo: an unknown attention",
        "demo --out out --attention rela",
        "recipe demo: model.attention = 'rela': unknown attention 'rela'; choose one of ...",
    ),
    row(
        "demo: an unknown setting",
        "demo --out out --set training.epoch=3",
        "recipe demo: unknown key training.epoch (did you mean epochs?); known are ...",
    ),
    row(
        "demo: --out is a file",
        "demo --out text.en",
        "text.en is a file; a training run needs a folder",
    ),
    row(
        "demo: --out is a model",
        "demo --out model",
        "model holds a model directory (config.json), but no recipe.json of a training run, which needs a folder of its own; choose another --out",
    ),
    row(
        "demo: --out is another run",
        "demo --out run",
        "run holds a run that is not a demo; choose another --out",
    ),
)
