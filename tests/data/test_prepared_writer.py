"""Corpora become token ids: what is kept, dropped and counted, in a folder that is whole."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from peak_memory import PRINT_PEAK, needs_proc

from relakit.data import prepared_writer as module
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_format import HELD_OUT_TOKENS
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, SplitCounts, prepare
from relakit.data.tokenizer import Tokenizer, learn_tokenizer
from relakit.files.locks import BusyError, locked

SOURCES = ["A dog runs.", "", "Two dogs run!", "The cat  sleeps.", "one " * 30, "Cats sleep.", "x"]
TARGETS = [
    "Ein Hund läuft.",
    "Leer",
    "Zwei Hunde laufen!",
    "Die Katze schläft.",
    "eins",
    " \t",
    "y",
]
KEPT = [0, 2, 3, 6]
SETTINGS = PrepareSettings(vocab_size=400, max_tokens=20, source_language="en")


def write_pair(folder: Path, name: str, sources: list[str], targets: list[str]) -> ParallelFiles:
    files = ParallelFiles(folder / f"{name}.en", folder / f"{name}.de")
    assert files.target is not None
    files.source.write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    files.target.write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    return files


@pytest.fixture
def train(tmp_path: Path) -> ParallelFiles:
    return write_pair(tmp_path, "train", SOURCES, TARGETS)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new" / "prepared"


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets all texts that are encoded."""
    texts_so_far: list[str] = []
    original = Tokenizer.encode_batch
    monkeypatch.setattr(
        Tokenizer,
        "encode_batch",
        lambda self, texts: texts_so_far.extend(texts) or original(self, texts),
    )
    return texts_so_far


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_vocabulary_that_cannot_be_reached_is_reported(
    train: ParallelFiles, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    summary = prepare({"train": train}, out, settings=PrepareSettings(vocab_size=900))
    assert caplog.messages == [
        f"the vocabulary has {summary.vocabulary} tokens, not 900 as asked for (vocab_size): no "
        f"more pairs of tokens occur 2 times in {train.source} and {train.target}"
    ]


class TestKept:
    def test_pairs_and_their_lines(self, train: ParallelFiles, out: Path) -> None:
        prepare({"train": train}, out, settings=SETTINGS)
        corpus = PreparedCorpus.load(out)
        split, tokenizer = corpus.train, corpus.tokenizer
        assert [int(line) for line in split.lines] == [index + 1 for index in KEPT]
        for place, index in enumerate(KEPT):
            assert list(split.source(place)) == tokenizer.encode(SOURCES[index]).ids
            assert list(split.target(place)) == tokenizer.encode(TARGETS[index]).ids
        assert corpus.settings == SETTINGS

    def test_counts(self, train: ParallelFiles, out: Path) -> None:
        report = prepare({"train": train}, out, settings=SETTINGS)
        split = PreparedCorpus.load(out).train
        expected = SplitCounts(
            read=7,
            kept=4,
            empty=2,
            overlong=1,
            source_tokens=int(split.source_lengths.sum()),
            target_tokens=int(split.target_lengths.sum()),
        )
        assert report.splits == {"train": expected}
        assert split.counts == expected
        assert report.vocabulary == PreparedCorpus.load(out).tokenizer.size

    def test_exactly_max_tokens_are_not_too_many(self, tmp_path: Path, out: Path) -> None:
        tokenizer = learn_tokenizer(["a b"], 300)
        exact, above = " ".join("a" * 10), " ".join("a" * 11)
        files = write_pair(tmp_path, "train", [exact, above, exact], [exact, exact, above])
        length = len(tokenizer.encode(exact).ids)
        settings = PrepareSettings(max_tokens=length)
        report = prepare({"train": files}, out, settings=settings, tokenizer=tokenizer)
        assert (report.splits["train"].kept, report.splits["train"].overlong) == (1, 2)

    def test_held_out_sets_keep_their_long_sentences(self, tmp_path: Path, out: Path) -> None:
        tokenizer = learn_tokenizer(["a b"], 300)
        short, long, endless = (" ".join("a" * count) for count in (3, 50, HELD_OUT_TOKENS + 1))
        files = {
            name: write_pair(tmp_path, name, [short, long, endless], [short, long, endless])
            for name in ("train", "valid", "test_2016")
        }
        settings = PrepareSettings(max_tokens=len(tokenizer.encode(short).ids))
        report = prepare(files, out, settings=settings, tokenizer=tokenizer)
        kept = {name: counts.kept for name, counts in report.splits.items()}
        assert kept == {"train": 1, "valid": 2, "test_2016": 2}

    def test_long_sentences_may_be_truncated(self, tmp_path: Path, out: Path) -> None:
        tokenizer = learn_tokenizer(["a b"], 300)
        short, long = "a b a", " ".join("ab" * 20)
        files = write_pair(tmp_path, "train", [long, short, ""], [short, long, long])
        settings = PrepareSettings(max_tokens=6, long_sentences="truncate")
        report = prepare({"train": files}, out, settings=settings, tokenizer=tokenizer)
        split = PreparedCorpus.load(out).train
        whole, beginning = tokenizer.encode(short).ids, tokenizer.encode(long).ids[:6]
        assert [list(split.source(i)) for i in range(2)] == [beginning, whole]
        assert [list(split.target(i)) for i in range(2)] == [whole, beginning]
        counts = report.splits["train"]
        assert (counts.kept, counts.empty, counts.overlong) == (2, 1, 2)
        assert [int(line) for line in split.lines] == [1, 2]

    @pytest.mark.parametrize("spaces", [0, 10_000])
    @pytest.mark.parametrize("word", ["ha", "dog "])
    def test_of_an_endless_line_only_the_beginning_is_encoded(
        self, word: str, spaces: int, tmp_path: Path, out: Path, encoded: list[str]
    ) -> None:
        endless = " " * spaces + word * 200_000
        files = write_pair(tmp_path, "train", ["a", endless], ["b", "c"])
        settings = PrepareSettings(vocab_size=400, max_tokens=20, long_sentences="truncate")
        prepare({"train": files}, out, settings=settings)
        assert max(map(len, encoded)) < 10_000
        corpus = PreparedCorpus.load(out)
        assert list(corpus.train.source(1)) == corpus.tokenizer.encode(endless).ids[:20]

    def test_endless_lines_are_counted_without_being_encoded(
        self, tmp_path: Path, out: Path, encoded: list[str]
    ) -> None:
        endless, padded = "ha" * 500_000, "a" + " " * 1_000_000 + "b"
        files = write_pair(tmp_path, "train", ["a", endless, padded], ["b", "c", "d"])
        report = prepare({"train": files}, out, settings=SETTINGS)
        assert (report.splits["train"].kept, report.splits["train"].overlong) == (2, 1)
        assert endless not in encoded
        assert padded in encoded

    @pytest.mark.parametrize(("pairs", "characters"), [(1, 1 << 22), (3, 1 << 22), (8192, 10)])
    def test_the_size_of_chunks_changes_nothing(
        self,
        pairs: int,
        characters: int,
        train: ParallelFiles,
        out: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        prepare({"train": train}, out, settings=SETTINGS)
        monkeypatch.setattr(module, "CHUNK_PAIRS", pairs)
        monkeypatch.setattr(module, "CHUNK_CHARACTERS", characters)
        other = out.with_name("other")
        prepare({"train": train}, other, settings=SETTINGS)
        assert contents(other) == contents(out)

    def test_compressed_files_and_columns_give_the_same(
        self, train: ParallelFiles, tmp_path: Path, out: Path
    ) -> None:
        packed = ParallelFiles(tmp_path / "a.gz", tmp_path / "b.zst")
        table = tmp_path / "train.tsv"
        assert train.target is not None
        assert packed.target is not None
        packed.source.write_bytes(gzip.compress(train.source.read_bytes()))
        packed.target.write_bytes(
            zstandard.ZstdCompressor().compress(train.target.read_bytes().replace(b"\n", b"\r\n"))
        )
        table.write_text(
            "".join(f"{a}\t{b.strip()}\n" for a, b in zip(SOURCES, TARGETS, strict=True))
        )
        results = []
        for number, files in enumerate((train, packed, ParallelFiles(table))):
            folder = out.with_name(str(number))
            prepare({"train": files}, folder, settings=SETTINGS)
            files_there = contents(folder)
            del files_there["corpus.json"]  # it names the inputs
            results.append(files_there)
        assert results[0] == results[1] == results[2]

    def test_a_large_vocabulary_takes_larger_numbers(
        self, train: ParallelFiles, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "token_type", lambda vocabulary: "<u4")
        prepare({"train": train}, out, settings=SETTINGS)
        corpus = PreparedCorpus.load(out)
        assert corpus.train.source_side.tokens.dtype == np.uint32
        assert corpus.tokenizer.decode(corpus.train.target(2)) == TARGETS[3]


class TestTokenizer:
    def test_learns_from_train_alone(self, tmp_path: Path, out: Path) -> None:
        train = write_pair(tmp_path, "train", ["alpha beta"] * 9, ["gamma"] * 9)
        test = write_pair(tmp_path, "test", ["delta"] * 99, ["delta"] * 99)
        prepare({"train": train, "test": test}, out, settings=SETTINGS)
        corpus = PreparedCorpus.load(out)
        assert corpus.splits == ("train", "test")
        assert list(corpus.train.source_lengths) == [2] * 9
        assert list(corpus.train.target_lengths) == [1] * 9
        assert corpus.test.source_lengths.min() > 1

    def test_can_be_given(self, train: ParallelFiles, out: Path) -> None:
        tokenizer = learn_tokenizer(["something else"] * 5, 300)
        prepare({"test": train}, out, settings=SETTINGS, tokenizer=tokenizer)
        assert PreparedCorpus.load(out).tokenizer.to_json() == tokenizer.to_json()

    @pytest.mark.parametrize("sample_lines", [2, 20, 64, 200, 10_000])
    def test_learns_from_pairs_that_are_spread_evenly(
        self, sample_lines: int, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count = 100
        files = write_pair(
            tmp_path, "train", [f"s{n}" for n in range(count)], [f"t{n}" for n in range(count)]
        )
        learned_from: list[str] = []

        def learn(lines: list[str], vocab_size: int, *, min_frequency: int) -> Tokenizer:
            learned_from.extend(lines)
            return learn_tokenizer(learned_from, vocab_size, min_frequency=min_frequency)

        monkeypatch.setattr(module, "learn_tokenizer", learn)
        settings = PrepareSettings(vocab_size=400, sample_lines=sample_lines)
        prepare({"train": files}, out, settings=settings)
        numbers = [int(line[1:]) for line in learned_from if line.startswith("s")]
        assert learned_from[1::2] == [f"t{number}" for number in numbers]
        assert len(numbers) == min(count, sample_lines // 2)
        gaps = np.diff([*numbers, count])
        assert numbers[0] == 0
        assert gaps.max() - gaps.min() <= 1


class TestFolder:
    def test_is_not_replaced_unasked(self, train: ParallelFiles, out: Path) -> None:
        prepare({"train": train}, out, settings=SETTINGS)
        before = contents(out)
        with pytest.raises(
            FileExistsError, match=f"^{out} holds a prepared corpus already; --force"
        ):
            prepare({"train": train}, out)
        assert contents(out) == before

    def test_is_replaced_when_asked(self, train: ParallelFiles, out: Path) -> None:
        prepare({"train": train, "old": train}, out, settings=SETTINGS)
        prepare({"train": train}, out, settings=SETTINGS, replace=True)
        assert PreparedCorpus.load(out).splits == ("train",)
        assert [path.name for path in out.parent.iterdir()] == [out.name]

    @pytest.mark.parametrize("replace", [False, True])
    def test_with_other_things_is_never_replaced(
        self, replace: bool, train: ParallelFiles, out: Path
    ) -> None:
        out.mkdir(parents=True)
        (out / "thesis.tex").touch()
        with pytest.raises(
            FileExistsError, match=r"holds 'thesis\.tex', which is not part of a prepared corpus"
        ):
            prepare({"train": train}, out, replace=replace)
        assert [path.name for path in out.iterdir()] == ["thesis.tex"]

    def test_with_something_of_the_user_s_is_not_replaced(
        self, train: ParallelFiles, out: Path
    ) -> None:
        prepare({"train": train}, out, settings=SETTINGS)
        (out / "notes.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=r"holds 'notes\.txt', which is not part of"):
            prepare({"train": train}, out, settings=SETTINGS, replace=True)
        assert (out / "notes.txt").read_text() == "mine"

    def test_with_a_run_is_not_replaced(self, train: ParallelFiles, out: Path) -> None:
        out.mkdir(parents=True)
        (out / "recipe.json").touch()
        with pytest.raises(FileExistsError, match=r"holds a training run \(recipe\.json\), which"):
            prepare({"train": train}, out, replace=True)

    def test_that_is_a_file(self, train: ParallelFiles, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError, match="is a file; a prepared corpus needs a folder"):
            prepare({"train": train}, tmp_path / "file", replace=True)

    def test_that_is_an_input(self, train: ParallelFiles, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(train.source)
        with pytest.raises(ValueError, match="is also the source of train"):
            prepare({"train": train}, tmp_path / "link", replace=True)

    def test_that_holds_an_input(self, train: ParallelFiles, out: Path) -> None:
        prepare({"train": train}, out, settings=SETTINGS)
        inside = ParallelFiles(out / "train.lines", train.target)
        with pytest.raises(ValueError, match=r"holds the source of train .*which would be lost"):
            prepare({"train": inside}, out, replace=True)

    def test_that_another_process_writes(self, train: ParallelFiles, out: Path) -> None:
        with locked(out, beside=True):
            with pytest.raises(BusyError, match=f"is at work in {out}: process {os.getpid()} on"):
                prepare({"train": train}, out, settings=SETTINGS)
            assert not out.exists()
        prepare({"train": train}, out, settings=SETTINGS)
        assert [path.name for path in out.parent.iterdir()] == [out.name]

    def test_that_is_empty_is_filled(self, train: ParallelFiles, out: Path) -> None:
        out.mkdir(parents=True)
        prepare({"train": train}, out, settings=SETTINGS)
        assert PreparedCorpus.load(out).splits == ("train",)

    @pytest.mark.parametrize("stage", ["reading words", "learning the tokenizer", "encoding train"])
    def test_is_not_there_after_an_interruption(
        self, stage: str, train: ParallelFiles, out: Path
    ) -> None:
        def interrupt(now: str, done: int, total: int | None) -> None:
            if now == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            prepare({"train": train}, out, settings=SETTINGS, on_stage=interrupt)
        assert not out.parent.exists()  # nor is the folder that was made for it


def test_tells_how_far_it_is(train: ParallelFiles, out: Path) -> None:
    stages: list[tuple[str, int, int | None]] = []
    prepare({"train": train}, out, settings=SETTINGS, on_stage=lambda *stage: stages.append(stage))
    names = list(dict.fromkeys(name for name, _, _ in stages))
    assert names == ["checking train", "reading words", "learning the tokenizer", "encoding train"]
    assert stages[-1] == ("encoding train", 7, 7)


@needs_proc
@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from relakit.data.parallel_files import ParallelFiles; "
        "from relakit.data.prepared_writer import PrepareSettings, prepare; "
        "prepare({'train': ParallelFiles(Path(sys.argv[1]))}, Path(sys.argv[2]), "
        "settings=PrepareSettings(vocab_size=300))\n" + PRINT_PEAK
    )
    small, large = (_peak_kib(code, pairs, tmp_path) for pairs in (16_000, 80_000))
    # To hold the pairs as strings or lists of ids would take at least 15 MiB more.
    assert large - small < 8 << 10, (small, large)


def _peak_kib(code: str, pairs: int, folder: Path) -> int:
    corpus = folder / f"{pairs}.tsv"
    corpus.write_text("".join(f"word {n % 97}\tWort {n % 89}\n" for n in range(pairs)))
    arguments = [sys.executable, "-c", code, str(corpus), str(folder / f"prepared-{pairs}")]
    result = subprocess.run(arguments, capture_output=True, check=True, text=True)
    return int(result.stdout.split()[-1])
