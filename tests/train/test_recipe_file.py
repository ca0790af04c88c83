"""Recipes: those that come with relakit, files, settings on the command line, and mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest

from relakit.decode.settings import SearchSettings
from relakit.model import ModelConfig
from relakit.nn.variants import AttentionSpec
from relakit.train.recipe_file import describe_recipes, load_recipe, make_recipe, recipe_names

GOOD = """
[data]
folder = "corpus"
[training]
epochs = 2
"""


def write(folder: Path, text: str) -> str:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", recipe_names())
def test_the_recipes_that_come_with_relakit_are_valid(name: str) -> None:
    recipe = load_recipe(name, [] if name == "demo" else ["data.folder=somewhere"])
    assert recipe.description
    recipe.model.config(vocabulary=100)


WMT = {
    "wmt14-en-de": ("en", "de"),
    "wmt14-en-fr": ("en", "fr"),
    "wmt16-ro-en": ("ro", "en"),
    "wmt18-en-fi": ("en", "fi"),
    "wmt18-zh-en": ("zh", "en"),
}


@pytest.mark.parametrize("name", WMT)
def test_the_papers_tasks_have_the_authors_settings(name: str) -> None:
    recipe = load_recipe(name, ["data.folder=somewhere"])
    assert (recipe.data.source, recipe.data.target) == WMT[name]
    assert (recipe.data.vocab_size, recipe.data.max_tokens) == (32_000, 256)
    assert recipe.data.long_sentences == "truncate"
    training = recipe.training
    assert (training.updates, training.checkpoint_every, training.keep) == (300_000, 5_000, 5)
    assert (training.batch_tokens, training.update_tokens) == (6_250, 25_000)
    assert (training.loss_mean, training.smoothing_over) == ("sentences", "wrong")
    assert training.warmup == 4_000
    config = recipe.model.config(vocabulary=32_000)
    assert config == ModelConfig(
        vocabulary=32_000,
        feed_forward_dropout=0.1,
        norm_eps=1e-8,
        source_embedding="separate",
        embedding_bias=True,
        first_input="zeros",
        timescales="tensor2tensor",
        self_attention_init="joint",
    )
    assert recipe.validation.search(4) == SearchSettings(
        nbest=1, min_length=1, length_factor=1, length_margin=50, wide_ends=True
    )


def test_a_recipe_like_another(tmp_path: Path) -> None:
    base = """
    description = "base"
    [data]
    folder = "corpus"
    vocab_size = 500
    [model]
    attention = { power = 2, norm = "none" }
    dropout = 0.3
    [training]
    epochs = 2
    seed = 7
    """
    (tmp_path / "base.toml").write_text(base, encoding="utf-8")
    own = """
    like = "base.toml"
    [data]
    prepared = "elsewhere"
    [model]
    attention = { threshold = 0.5 }
    [training]
    epochs = 3
    """
    recipe = load_recipe(write(tmp_path, own), ["training.warmup=9"])
    assert recipe.description == "base"
    assert (recipe.data.folder, recipe.data.prepared) == (None, Path("elsewhere"))
    assert recipe.data.vocab_size == 500
    assert recipe.model.dropout == 0.3
    assert recipe.model.attention == AttentionSpec(threshold=0.5), "an attention is one value"
    assert (recipe.training.epochs, recipe.training.seed, recipe.training.warmup) == (3, 7, 9)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ('"authers"', r"recipe\.toml is like 'authers': there is no recipe 'authers' \(did you"),
        ('"recipe.toml"', "recipes are like each other in a circle: .*recipe.toml, .*recipe.toml"),
        ("3", r"recipe\.toml: like = 3: it must be the name of a recipe, or a file"),
    ],
)
def test_a_recipe_like_none(like: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe(write(tmp_path, f"like = {like}\n{GOOD}"))
    with pytest.raises(FileNotFoundError, match=r"recipe\.toml is like .*none\.toml"):
        load_recipe(write(tmp_path, f'like = "none.toml"\n{GOOD}'))


TABLE = """
[model]
attention = { threshold = "learned", power = 2 }
cross_attention = { activation = "softmax", norm = "none" }
"""


def test_an_attention_may_be_a_table(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD + TABLE))
    config = recipe.model.config(vocabulary=10)
    learned = AttentionSpec(threshold="learned", power=2)
    assert config.encoder_attention == config.decoder_attention == learned
    assert config.cross_attention == "softmax"
    assert make_recipe(json.loads(recipe.model_dump_json()), "again") == recipe


@pytest.mark.parametrize(
    ("written", "settings", "expected"),
    [
        ("", [".threshold=learned"], {"threshold": "learned"}),
        ('"rela-i"', [".power=2"], {"gate": False, "gain_init": "xavier", "power": 2}),
        ("{ power = 2 }", [".threshold=0.5"], {"power": 2, "threshold": 0.5}),
        ("", ["={ norm = 'layer', power = 2 }"], {"norm": "layer", "power": 2}),
        ("", ["=relu", ".length_exponent=1"], {"norm": "none", "length_exponent": 1}),
    ],
)
@pytest.mark.parametrize("key", ["attention", "encoder_attention"])
def test_single_fields_of_an_attention_can_be_set(
    key: str, written: str, settings: list[str], expected: dict[str, Any], tmp_path: Path
) -> None:
    text = f"{GOOD}[model]\n{key} = {written}\n" if written else GOOD
    recipe = load_recipe(write(tmp_path, text), [f"model.{key}{setting}" for setting in settings])
    config = recipe.model.config(vocabulary=10)
    assert config.encoder_attention == AttentionSpec(**expected)
    if key != "attention":
        assert config.cross_attention == "rela-g"


def test_every_recipe_is_described() -> None:
    described = describe_recipes()
    assert [name for name, _ in described] == recipe_names()
    assert all(text for _, text in described)


def test_defaults_are_the_papers(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD))
    config = recipe.model.config(vocabulary=32_000)
    assert (config.dim, config.heads, config.encoder_layers, config.feed_forward) == (
        512, 8, 6, 2048,
    )  # fmt: skip
    training = recipe.training
    assert training.update_tokens == 25_000
    assert training.warmup == 4000
    assert training.adam_betas == (0.9, 0.98)
    assert training.label_smoothing == config.dropout == config.attention_dropout == 0.1
    assert training.keep == 5
    assert (recipe.validation.final_beam, recipe.validation.length_penalty) == (4, 0.6)


def test_settings_replace_the_recipes(tmp_path: Path) -> None:
    recipe = load_recipe(
        write(tmp_path, GOOD),
        [
            "training.epochs=7",
            "model.attention=softmax",
            "model.cross_attention='rela-i'",
            "model.size=tiny",
            "model.norm_first=true",
            "training.adam_betas=[0.9, 0.99]",
            "data.prepared=other/place",
        ],
    )
    assert recipe.training.epochs == 7
    config = recipe.model.config(vocabulary=10)
    assert config.encoder_attention == config.decoder_attention == "softmax"
    assert config.cross_attention == "rela-i"
    assert config.dim == 128
    assert config.norm_first
    assert recipe.training.adam_betas == (0.9, 0.99)
    assert recipe.data.folder is None
    assert recipe.data.prepared == Path("other/place")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.epoch=3", r"unknown key training\.epoch \(did you mean epochs\?\)"),
        ("trainig.epochs=3", r"unknown key trainig \(did you mean training\?\)"),
        ("data.generated.trian=3", r"unknown key data\.generated\.trian \(did you mean train\?\)"),
        ("training.epochs=0", r"training\.epochs = 0: must be at least 1"),
        ("training.epochs=many", r"training\.epochs = 'many'"),
        ("training.label_smoothing=1.0", r"training\.label_smoothing = 1\.0"),
        ("model.attention=softmx", "unknown attention 'softmx'; choose one of softmax"),
        ("model.attention.treshold=1",
         r"toml: model\.attention: unknown key treshold \(did you mean threshold\?\); known are"),
        ("model.cross_attention.norm=rsm",
         r"toml: model\.cross_attention: unknown norm 'rsm'; choose one of none, rms, layer"),
        ("model.attention=3", r"model\.attention = 3: an attention is a name or a table"),
        ("model.size=huge", r"model\.size = 'huge': must be 'tiny', 'small' or 'base'"),
        ("model.heads=7", "heads must divide dim, got heads=7 and dim=512"),
        ("training.seed=-1", r"training\.seed = -1: must be at least 0"),
        ("training.adam_betas=[2, 3]", r"training\.adam_betas\.0 = 2"),
        ("training.loss_mean=words", r"training\.loss_mean = 'words': .*'tokens' or 'sentences'"),
        ("training.smoothing_over=few", r"training\.smoothing_over = 'few': .*'all' or 'wrong'"),
        ("data.long_sentences=cut", r"data\.long_sentences = 'cut': .*'drop' or 'truncate'"),
        ("validation.length_margin=0", r"validation\.length_margin = 0"),
        ("training.seed=99999999999999999999", r"training\.seed = 9{20}: must be at most 9,223,"),
        ("training.epochs=1.5", r"training\.epochs = 1\.5: must be a whole number"),
        ("model.dropout=much", r"model\.dropout = 'much': must be a number"),
        ("model.norm_first=perhaps", r"model\.norm_first = 'perhaps': must be true or false"),
        ("validation.beam=100000", r"validation: the beam must be at most 1,000, got 100,000"),
        ("validation.final_beam=100000", r"validation: the beam must be at most 1,000, got 100"),
        ("data.vocab_size=100", r"data\.vocab_size = 100: must be at least 260"),
        ("data.vocab_size=1000000000", r"data\.vocab_size = 1000000000: must be at most 1,000,000"),
        ("training=3", r"training = 3: must have keys and values"),
        ("model.dim=1000000000",
         r"toml: model: dim must be at most 1,048,576, got 1,000,000,000; training such a model "
         r"would need about 999 EiB of memory"),
        ("model.encoder_layers=100000000",
         r"encoder_layers must be at most 1,000, got 100,000,000; .* about \d.* of memory"),
        (f"training.epochs={'[' * 20_000}", r"training\.epochs = '\[\[.*\.\.\.\[.*': must be a"),
        ("training.epochs", "--set needs key=value"),
        ("=3", "--set needs key=value"),
        ("training.epochs.x=3", "epochs is a value and has no parts"),
    ],
)  # fmt: skip
def test_bad_settings(setting: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe(write(tmp_path, GOOD), [setting])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data\n", r"recipe\.toml is no valid TOML: .*line 1"),
        (f"x = {'[' * 20_000}", r"recipe\.toml is no recipe: it is nested too deeply"),
        ("[training]\nepochs = 1\n", r"recipe\.toml: data is missing"),
        ('[data]\nfolder = "x"\n', r"recipe\.toml: training is missing"),
        ('[data]\nfolder = "x"\n[training]\n', "set epochs, updates or minutes, or training would"),
        (
            "[data]\n[training]\nepochs = 1\n",
            "prepared, folder and generated must be set, got none",
        ),
        (
            '[data]\nfolder = "x"\nprepared = "y"\n[training]\nepochs = 1\n',
            "must be set, got prepared and folder",
        ),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_recipe(write(tmp_path, text))


def test_two_places_on_the_command_line(tmp_path: Path) -> None:
    """One replaces the recipe's own place, but two would replace each other silently."""
    path = write(tmp_path, GOOD)
    assert load_recipe(path, ["data.prepared=y"]).data.prepared == Path("y")
    with pytest.raises(ValueError, match=r"^--set data\.prepared and --set data\.folder excl"):
        load_recipe(path, ["data.folder=x", "data.prepared=y"])


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"no recipe 'multi30k-smal' \(did you mean multi30k-small"
    ):
        load_recipe("multi30k-smal")
    with pytest.raises(FileNotFoundError, match=r"none\.toml: there is no such file$"):
        load_recipe(str(tmp_path / "none.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.toml is a folder; name a file"):
        load_recipe(str(tmp_path / "folder.toml"))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"recipe\.toml is not UTF-8"):
        load_recipe(str(path))
