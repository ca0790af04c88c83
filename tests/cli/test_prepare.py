"""`relakit prepare`: three ways to name a corpus, what it prints, and how it refuses."""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relakit.cli import main as cli
from relakit.data.prepared_reader import PreparedCorpus

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["relakit", "prepare", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0)

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with pairs for train, val and test_9; the last line of train.de is empty."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("train", "val", "test_9"):
        source = "".join(f"{name} dog number {n}\n" for n in range(12))
        target = "".join(f"{name} Hund Nummer {n}\n" for n in range(11)) + "\n"
        (folder / f"{name}.en.gz").write_bytes(gzip.compress(source.encode()))
        (folder / f"{name}.de.gz").write_bytes(gzip.compress(target.encode()))
        pairs = zip(source.splitlines(), target.splitlines(), strict=True)
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_a_vocabulary_for_each_language(
    run: Run, corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ("--folder", corpus, "--source-lang", "en", "--target-lang", "de")
    assert run(out, *folder, "--vocab-size", 270, "--separate") == 0
    assert "270 tokens in the vocabulary of the source, 270 in that of" in capsys.readouterr().out
    prepared = PreparedCorpus.load(out)
    assert prepared.settings.vocabulary == "separate"
    assert prepared.tokenizers.source.tokens != prepared.tokenizers.target.tokens
    tokenizer = ("--tokenizer", out / "tokenizer.json", "--separate")
    assert run(out, *folder, *tokenizer, "--force") == 1
    assert "--separate is for learning a tokenizer" in capsys.readouterr().err


def test_a_folder(run: Run, corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    languages = ("--source-lang", "en", "--target-lang", "de")
    assert run(out, "--folder", corpus, *languages, "--vocab-size", 280) == 0
    prepared = PreparedCorpus.load(out)
    assert prepared.splits == ("train", "valid", "test")
    assert (prepared.source_language, prepared.target_language) == ("en", "de")
    assert prepared.settings.vocab_size == prepared.tokenizer.size == 280
    assert prepared.tokenizer.decode(prepared.test.target(10)) == "test_9 Hund Nummer 10"
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    assert rows[0][:5] == ["split", "pairs", "kept", "empty", "too"]
    tokens = [f"{sum(prepared.valid.source_lengths)}", f"{sum(prepared.valid.target_lengths)}"]
    assert rows[2] == ["valid", "12", "11", "1", "0", *tokens]
    assert "280 tokens in the vocabulary, peak memory" in printed.out
    assert printed.out.endswith(f"The corpus is in {out}.\n")
    assert printed.err == ""


def test_pairs_of_files_and_tables(run: Run, corpus: Path, out: Path) -> None:
    train = (corpus / "train.en.gz", corpus / "train.de.gz")
    assert run(out, "--train", *train, "--valid-tsv", corpus / "val.tsv", "--max-tokens", 50) == 0
    prepared = PreparedCorpus.load(out)
    assert prepared.splits == ("train", "valid")
    assert prepared.settings.max_tokens == 50
    assert prepared.settings.long_sentences == "drop"
    assert prepared.tokenizer.decode(prepared.train.source(0)) == "train dog number 0"
    assert prepared.tokenizer.decode(prepared.valid.source(0)) == "val dog number 0"


def test_truncation(run: Run, corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(out, "--train-tsv", corpus / "train.tsv", "--max-tokens", 2, "--truncate") == 0
    prepared = PreparedCorpus.load(out)
    assert prepared.settings.long_sentences == "truncate"
    assert set(prepared.train.source_lengths) == {2}
    row = next(x.split() for x in capsys.readouterr().out.splitlines() if x.startswith("train"))
    assert row[1:5] == ["12", "11", "1", "11"]


def test_a_tokenizer_that_is_there(run: Run, corpus: Path, out: Path) -> None:
    assert run(out, "--train-tsv", corpus / "train.tsv") == 0
    other, tokenizer = out.with_name("other"), out / "tokenizer.json"
    assert run(other, "--test-tsv", corpus / "val.tsv", "--tokenizer", tokenizer) == 0
    assert (other / "tokenizer.json").read_bytes() == tokenizer.read_bytes()


def test_an_earlier_corpus_is_replaced_by_force_only(
    run: Run, corpus: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(out, "--train-tsv", corpus / "train.tsv") == 0
    capsys.readouterr()
    assert run(out, "--train-tsv", corpus / "val.tsv") == 1
    error = f"relakit: error: {out} holds a prepared corpus already; --force replaces it"
    assert capsys.readouterr().err.startswith(error)
    assert run(out, "--train-tsv", corpus / "val.tsv", "--force") == 0
    prepared = PreparedCorpus.load(out)
    assert prepared.tokenizer.decode(prepared.train.source(0)) == "val dog number 0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the corpus: --train SOURCE TARGET, --train-tsv FILE or --folder"),
        (["--folder", "."], "--folder needs --source-lang and --target-lang"),
        (["--folder", ".", "--train-tsv", "a"], "--folder and --train exclude each other"),
        (["--train", "a", "b", "--train-tsv", "a"], "--train and --train-tsv exclude each other"),
        (["--train-tsv", "nowhere.tsv"], "nowhere.tsv (train): there is no such file"),
        (["--train-tsv", "train.tsv", "--vocab-size", "100"], "vocab_size must be at least 260"),
        (["--train-tsv", "train.tsv", "--max-tokens", "0"], "max_tokens must be at least 1, got 0"),
        (
            ["--train-tsv", "train.tsv", "--tokenizer", "t.json", "--vocab-size", "500"],
            "--vocab-size is for learning a tokenizer; leave it or --tokenizer out",
        ),
        (["--valid-tsv", "val.tsv"], "the tokenizer is learned from train: give a split train"),
        (
            ["--train-tsv", "train.tsv", "--tokenizer", "train.tsv"],
            "train.tsv is neither a tokenizer.json nor a SentencePiece .model, or is damaged",
        ),
        (
            ["--train", "train.en.gz", "short.de"],
            "train.en.gz has 12 lines, short.de has 2: line n of one must be the translation",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str],
    message: str,
    run: Run,
    corpus: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(corpus)
    Path("short.de").write_text("eins\nzwei\n")
    assert run(out, *arguments) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"relakit: error: {message}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not out.exists()
    assert not [path for path in out.parent.iterdir() if path.suffix == ".tmp"]


def test_a_terminal_shows_what_is_being_done(
    run: Run,
    corpus: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert run(out, "--train-tsv", corpus / "train.tsv") == 0
    assert "encoding train" in capsys.readouterr().err
