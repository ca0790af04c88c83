"""examples/language_model.py."""

import re
from collections.abc import Callable
from pathlib import Path

import language_model as lm
import pytest
import torch
from attention_choices import CHOICES
from texts import read_texts

SHORT = ("--steps", "12", "--batch-size", "4", "--length", "24", "--vocabulary", "280")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--attention", "rela-g"),
        ("--attention", "softmax", "--packed"),
        ("--attention", "rela-i", "--positions", "alibi", "--window", "5"),
        ("--attention", "relu2-length", "--packed", "--kv-heads", "2"),
        ("--attention", "softpick", "--window", "9"),
    ],
    ids=" ".join,
)
def test_it_learns_and_prints_its_numbers(
    arguments: tuple[str, ...], run_example: Callable[..., str], text_file: Path
) -> None:
    printed = run_example("language_model.py", *SHORT, *arguments, "--text", text_file)
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", printed)]
    assert losses[-1] < losses[0] - 0.3
    zeros = float(re.search(r"zeros ([0-9.]+)%", printed)[1])
    assert (zeros == 0) == (arguments[1] == "softmax")
    assert "it writes:\ndef " in printed


def small_model(**options: object) -> lm.LanguageModel:
    torch.manual_seed(0)
    settings = {"attention": CHOICES["rela-g"], "vocabulary": 300, "layers": 2} | options
    return lm.LanguageModel(lm.ModelSettings(**settings)).eval()


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
@pytest.mark.parametrize("window", [None, 4])
@torch.no_grad()
def test_a_cache_changes_nothing(positions: str, window: int | None) -> None:
    import relakit

    model = small_model(positions=positions, window=window, kv_heads=2)
    tokens = torch.randint(300, (1, 12), generator=torch.Generator().manual_seed(1))
    caches = [relakit.KeyValueCache() for _ in model.attentions]
    parts = [model(part, caches=caches) for part in tokens.split([5, 1, 1, 5], dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), model(tokens), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_packed_texts_do_not_see_each_other(text_file: Path) -> None:
    corpus = lm.Corpus(read_texts([text_file]), 300)
    model = small_model()
    row = corpus.training_batch(
        lm.BatchSettings(rows=4, length=40, is_packed=True), torch.Generator().manual_seed(1)
    )
    assert row.shape == (1, 161)
    starts = corpus.starts(row[0])
    assert len(starts) > 3
    packed = model(row, starts)
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        alone = model(row[:, start:end])
        torch.testing.assert_close(packed[:, start:end], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attention", "softmx"], "invalid choice: 'softmx' (choose from"),
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--window", "0"], "--window must be at least 1, got 0"),
    ],
)
def test_it_rejects_bad_arguments(
    arguments: list[str],
    message: str,
    run_example: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_example("language_model.py", *arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "missing.txt"], "missing.txt"),
        (["--vocabulary", "100"], "a vocabulary must have more than 256 tokens, got 100"),
        (["--length", "100000"], "tokens, too few for 100,000"),
    ],
)
def test_what_is_wrong_with_files_is_one_line(
    arguments: list[str], message: str, run_example: Callable[..., str], text_file: Path
) -> None:
    with pytest.raises(SystemExit, match=rf"^error: .*{message}"):
        run_example("language_model.py", "--text", text_file, *arguments)
