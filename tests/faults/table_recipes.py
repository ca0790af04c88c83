"""`relakit train`: recipes and --set."""

from fault_rows import Row, put, replace, row, usage

TRAIN = "train recipe.toml --out out"
SET = f"{TRAIN} --set"

ROWS: tuple[Row, ...] = (
    usage(
        "no recipe",
        "train",
        "Invalid value for RECIPE: name a recipe (..., or a .toml file); it can be left out only with --resume and --out",
    ),
    usage("an unknown option", "train recipe.toml --epochs 3", "No such option: --epochs"),
    row(
        "an unknown recipe",
        "train dmo --out out",
        "there is no recipe 'dmo' (did you mean demo?); choose one of ...",
    ),
    row("no such file", "train none.toml --out out", "none.toml: there is no such file"),
    row(
        "a folder",
        "train corpus.toml --out out",
        "corpus.toml is a folder; name a file",
        lambda f: (f / "corpus.toml").mkdir(),
    ),
    row("another kind of file", "train text.en --out out", "text.en is no valid TOML: ..."),
    row(
        "a file that is no UTF-8",
        TRAIN,
        "recipe.toml is not UTF-8 (byte 0xff at position 6): it is no recipe",
        put("recipe.toml", b"a = '\xff'"),
    ),
    row(
        "the home of nobody",
        f"{SET} data.prepared=~nobody-of-that-name/corpus",
        "~nobody-of-that-name/corpus is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
    ),
    row("no TOML", TRAIN, "recipe.toml is no valid TOML: ...", put("recipe.toml", "[data\n")),
    row(
        "a key twice",
        TRAIN,
        "recipe.toml is no valid TOML: ...",
        put("recipe.toml", "a = 1\na = 2\n"),
    ),
    row(
        "an empty recipe",
        TRAIN,
        "recipe.toml: data is missing; training is missing",
        put("recipe.toml", ""),
    ),
    row(
        "a deeply nested recipe",
        TRAIN,
        "recipe.toml is no recipe: it is nested too deeply",
        put("recipe.toml", "a = " + "[" * 5000 + "]" * 5000),
    ),
    row(
        "a section that is a value",
        TRAIN,
        "recipe.toml: data = 3: must have keys and values; training = 4: must have keys and values",
        put("recipe.toml", "data = 3\ntraining = 4\n"),
    ),
    row(
        "a recipe like itself",
        TRAIN,
        "recipe.toml is like 'recipe.toml': recipes are like each other in a circle: recipe.toml, recipe.toml",
        put("recipe.toml", 'like = "recipe.toml"'),
    ),
    row(
        "a recipe like none",
        TRAIN,
        "recipe.toml is like 'none': there is no recipe 'none'; choose one of ...",
        put("recipe.toml", 'like = "none"'),
    ),
    row(
        "a recipe like a number",
        TRAIN,
        "recipe.toml: like = 3: it must be the name of a recipe, or a file",
        put("recipe.toml", "like = 3"),
    ),
    row(
        "an unknown key",
        TRAIN,
        "recipe.toml: unknown key model.dimm (did you mean dim?); known are ...",
        replace("recipe.toml", "dim =", "dimm ="),
    ),
    row(
        "an unknown section",
        TRAIN,
        "recipe.toml: unknown key modell (did you mean model?); known are description, data, model, training, validation",
        replace("recipe.toml", "[model]", "[modell]"),
    ),
    row(
        "no place for the data",
        TRAIN,
        "recipe.toml: data: exactly one of prepared, folder and generated must be set, got none of them; for example: --set data.folder=path/to/corpus",
        replace("recipe.toml", 'prepared = "prepared"', ""),
    ),
    row(
        "two places for the data",
        TRAIN,
        "recipe.toml: data: exactly one of prepared, folder and generated must be set, got prepared and folder; for example: --set data.folder=path/to/corpus",
        replace("recipe.toml", 'prepared = "prepared"', 'prepared = "prepared"\nfolder = "corpus"'),
    ),
    row(
        "two places for the data by --set",
        f"{SET} data.folder=corpus --set data.prepared=prepared",
        "--set data.prepared and --set data.folder exclude each other; give one of them",
    ),
    row(
        "training without an end",
        TRAIN,
        "recipe.toml: training: set epochs, updates or minutes, or training would never end",
        replace("recipe.toml", "updates = 4", ""),
    ),
    row(
        "--set without a value",
        f"{SET} training.updates",
        "--set needs key=value, such as training.epochs=3, got 'training.updates'",
    ),
    row(
        "--set without a key",
        f"{SET} =3",
        "--set needs key=value, such as training.epochs=3, got '=3'",
    ),
    row(
        "--set of a part of a value",
        f"{SET} model.dim.x=3",
        "--set model.dim.x=3: dim is a value and has no parts",
    ),
    row(
        "--set of an unknown key",
        f"{SET} training.epoch=3",
        "recipe.toml: unknown key training.epoch (did you mean epochs?); known are ...",
    ),
    row(
        "--set of an unknown section",
        f"{SET} trainig.epochs=3",
        "recipe.toml: unknown key trainig (did you mean training?); known are description, data, model, training, validation",
    ),
    row(
        "a word for a number",
        f"{SET} training.updates=many",
        "recipe.toml: training.updates = 'many': must be a whole number",
    ),
    row(
        "a fraction of an update",
        f"{SET} training.updates=2.5",
        "recipe.toml: training.updates = 2.5: must be a whole number",
    ),
    row(
        "no updates",
        f"{SET} training.updates=0",
        "recipe.toml: training.updates = 0: must be at least 1",
    ),
    row(
        "updates below zero",
        f"{SET} training.updates=-1",
        "recipe.toml: training.updates = -1: must be at least 1",
    ),
    row(
        "a number of thirty digits",
        f"{SET} training.updates={'9' * 30}",
        "recipe.toml: training.updates = 999999999999999999999999999999: must be at most 9,223,372,036,854,775,807",
    ),
    row(
        "minutes without end",
        f"{SET} training.minutes=nan",
        "recipe.toml: training.minutes = nan: must be a finite number",
    ),
    row(
        "dim of a billion",
        f"{SET} model.dim=1000000000",
        "recipe.toml: model: dim must be at most 1,048,576, got 1,000,000,000; training such a model would need about 167 EiB of memory",
    ),
    row(
        "dim that heads do not divide",
        f"{SET} model.dim=15",
        "recipe.toml: model: heads must divide dim, got heads=2 and dim=15",
    ),
    row(
        "an odd dim",
        f"{SET} model.dim=15 --set model.heads=1",
        "recipe.toml: model: dim must be even (a sine and a cosine each), got 15",
    ),
    row("no heads", f"{SET} model.heads=0", "recipe.toml: model.heads = 0: must be at least 1"),
    row(
        "a hundred million layers",
        f"{SET} model.encoder_layers=100000000",
        "recipe.toml: model: encoder_layers must be at most 1,000, got 100,000,000; training such a model would need about 2.2 TiB of memory",
    ),
    row(
        "a feed-forward layer of a billion",
        f"{SET} model.feed_forward=1000000000",
        "recipe.toml: model: feed_forward must be at most 1,048,576, got 1,000,000,000; training such a model would need about 954 GiB of memory",
    ),
    row(
        "a model larger than memory",
        f"{SET} model.dim=65536 --set model.encoder_layers=900",
        "training this model (model.dim = 65,536, model.feed_forward = 16, 900 + 1 layers, at least 300 tokens) would need about 226 TiB of memory, this machine has ...; make it smaller",
    ),
    row(
        "an unknown size",
        f"{SET} model.size=huge",
        "recipe.toml: model.size = 'huge': must be 'tiny', 'small' or 'base'",
    ),
    row(
        "an unknown attention",
        f"{SET} model.attention=rela",
        "recipe.toml: model.attention = 'rela': unknown attention 'rela'; choose one of ...",
    ),
    row(
        "an unknown option of attention",
        f"{SET} model.attention.powr=2",
        "recipe.toml: model.attention: unknown key powr (did you mean power?); known are ...",
    ),
    row(
        "a word for a power",
        f"{SET} model.attention.power=x",
        "recipe.toml: model.attention: power must be a number, got 'x'",
    ),
    row(
        "a negative power",
        f"{SET} model.attention.power=-1",
        "recipe.toml: model.attention: power must be a finite number above 0, got -1",
    ),
    row(
        "a list for an attention",
        f"{SET} model.attention=[1]",
        "recipe.toml: model.attention = [1]: an attention is a name or a table, got [1]",
    ),
    row(
        "a power for softmax",
        f'{SET} model.attention={{activation="softmax",norm="none",power=2.0}}',
        "recipe.toml: model.attention: power=2.0 has no meaning for activation 'softmax' (options of 'softmax': none); activations that take power: relu",
    ),
    row(
        "a gate without norm",
        f'{SET} model.attention={{norm="none",gate=true}}',
        "recipe.toml: model.attention: gate=True needs a norm to gate: norm='rms' or 'layer', got 'none'",
    ),
    row(
        "dropout of everything",
        f"{SET} model.dropout=1.0",
        "recipe.toml: model.dropout = 1.0: must be below 1",
    ),
    row(
        "dropout of a word",
        f"{SET} model.dropout=some",
        "recipe.toml: model.dropout = 'some': must be a number",
    ),
    row(
        "a switch that is neither",
        f"{SET} model.norm_first=maybe",
        "recipe.toml: model.norm_first = 'maybe': must be true or false",
    ),
    row(
        "no epsilon", f"{SET} model.norm_eps=0", "recipe.toml: model.norm_eps = 0: must be above 0"
    ),
    row(
        "an infinite epsilon",
        f"{SET} model.norm_eps=inf",
        "recipe.toml: model.norm_eps = inf: must be a finite number",
    ),
    row(
        "a vocabulary of 10",
        f"{SET} data.vocab_size=10",
        "recipe.toml: data.vocab_size = 10: must be at least 260",
    ),
    row(
        "a vocabulary of a billion",
        f"{SET} data.vocab_size=1000000000",
        "recipe.toml: data.vocab_size = 1000000000: must be at most 1,000,000",
    ),
    row(
        "no warm-up",
        f"{SET} training.warmup=0",
        "recipe.toml: training.warmup = 0: must be at least 1",
    ),
    row(
        "a cooldown of epochs",
        f"{SET} training.cooldown=0.2",
        "recipe.toml: training: cooldown = 0.2 is a share of updates, but these are not set; set "
        "them, or cooldown = 0",
        replace("recipe.toml", "updates = 4", "epochs = 2"),
    ),
    row(
        "nothing but cooldown",
        f"{SET} training.cooldown=1 --set training.updates=5",
        "recipe.toml: training.cooldown = 1: must be below 1",
    ),
    row(
        "a learning rate that is no number",
        f"{SET} training.learning_rate_factor=nan",
        "recipe.toml: training.learning_rate_factor = nan: must be a finite number",
    ),
    row(
        "an infinite learning rate",
        f"{SET} training.learning_rate_factor=inf",
        "recipe.toml: training.learning_rate_factor = inf: must be a finite number",
    ),
    row(
        "one beta",
        f"{SET} training.adam_betas=[0.9]",
        "recipe.toml: training.adam_betas.1 is missing",
    ),
    row(
        "three betas",
        f"{SET} training.adam_betas=[0.9,0.9,0.9]",
        "recipe.toml: training.adam_betas = [0.9, 0.9, 0.9]: must have at most 2 values",
    ),
    row(
        "an unknown precision",
        f"{SET} training.precision=fp8",
        "recipe.toml: training.precision = 'fp8': must be 'fp32', 'bf16' or 'auto'",
    ),
    row(
        "a seed below zero",
        f"{SET} training.seed=-1",
        "recipe.toml: training.seed = -1: must be at least 0",
    ),
    row(
        "a hundred thousand threads",
        f"{SET} training.threads=100000",
        "training.threads must be at most ... on this machine with ... processors, got 100,000, whose stacks alone may take 781 GiB",
    ),
    row(
        "an unknown device",
        f"{SET} training.device=gpu",
        "recipe.toml: training.device = 'gpu': unknown device 'gpu'; choose auto, cpu or cuda, of several by its number: cuda:1",
    ),
    row(
        "a device where nothing is computed",
        f"{SET} training.device=meta",
        "recipe.toml: training.device = 'meta': unknown device 'meta'; choose auto, cpu or cuda, of several by its number: cuda:1",
    ),
    row(
        "batches of one token",
        f"{SET} training.batch_tokens=1",
        "training.batch_tokens = 1, but the longest sentence of train has 72 tokens with its end: give at least that many, or prepare the corpus with a smaller max_tokens",
    ),
    row(
        "a beam of a hundred thousand",
        f"{SET} validation.beam=100000",
        "recipe.toml: validation: the beam must be at most 1,000, got 100,000: with a model of the paper's size, a single translation of 70 tokens would need about 160 GiB of memory",
    ),
    row(
        "a length penalty below zero",
        f"{SET} validation.length_penalty=-1",
        "recipe.toml: validation.length_penalty = -1: must be at least 0",
    ),
    row(
        "other languages than the corpus",
        f"{SET} data.source=fr --set data.target=de",
        "prepared was prepared for en to de, but the recipe says data.source = 'fr', data.target = 'de'; change the recipe, or prepare the corpus for these languages",
    ),
    row(
        "a prepared corpus that is none",
        f"{SET} data.prepared=corpus",
        "corpus is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
    ),
    row(
        "a prepared corpus that is not there",
        f"{SET} data.prepared=none",
        "none is not a prepared corpus: it has no corpus.json; make one with `relakit prepare`",
    ),
    row(
        "a text folder that is not there",
        f"{SET} data.folder=none",
        "none: there is no such folder",
    ),
    row(
        "a text folder without training text",
        f"{SET} data.folder=model",
        "model has no train.en (plain, .gz or .zst); name the files one by one if they are called differently",
    ),
    row(
        "a path that is a number",
        f"{SET} data.folder=3.5",
        "recipe.toml: data.folder = 3.5: must be a path",
    ),
    row(
        "a corpus of no pairs",
        "train demo --out out --set data.generated.train=0",
        "recipe demo: data.generated.train = 0: must be at least 1",
    ),
)
