"""Turn text into a prepared corpus: check it, learn a tokenizer, and encode, in bounded memory.

The files are read several times, as streams. The first pass finds every mistake before the long
work begins, and counts the pairs, so that the tokenizer can learn from lines spread evenly.
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from relakit.data.pair_encoder import KeptPairs, PairEncoder
from relakit.data.parallel_files import ParallelFiles, read_pairs, spread_evenly
from relakit.data.prepared_format import (
    DOCUMENT_NAME,
    FORMAT,
    OFFSET_TYPE,
    SIDES,
    CorpusDocument,
    PrepareSettings,
    SplitCounts,
    lines_name,
    offsets_name,
    token_type,
    tokens_name,
)
from relakit.data.stages import OnStage, ignore_stage
from relakit.data.tokenizer import LONGEST_TOKEN, Tokenizer, learn_tokenizer
from relakit.data.tokenizer_pair import (
    TokenizerPair,
    Tokenizers,
    learn_tokenizers,
    save_tokenizers,
    tokenizers_digest,
)
from relakit.files.locks import locked
from relakit.files.output_paths import PREPARED, check_output_folder, refuse_inputs
from relakit.files.writing import whole_file, whole_folder, write_whole

__all__ = ["PrepareSettings", "PreparedSummary", "SplitCounts", "prepare"]

logger = logging.getLogger(__name__)

CHUNK_PAIRS: Final = 8192
CHUNK_CHARACTERS: Final = 1 << 22
SPLIT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, kw_only=True)
class PreparedSummary:
    """What `prepare` did."""

    folder: Path
    vocabulary: int
    """Tokens in the tokenizer, or in the target's tokenizer."""
    source_vocabulary: int | None
    """Tokens in the source's tokenizer, if it has its own."""
    splits: dict[str, SplitCounts]


def prepare(
    splits: Mapping[str, ParallelFiles],
    folder: Path,
    *,
    settings: PrepareSettings | None = None,
    tokenizer: Tokenizers | None = None,
    replace: bool = False,
    on_stage: OnStage = ignore_stage,
) -> PreparedSummary:
    """Encode the splits of a corpus into a folder, which appears when everything is done.

    The tokenizer, or one for each language, is learned from the split "train" unless given.

    Raises:
        ValueError: says what is wrong with the corpus, where, and what to do.
        FileExistsError: the folder exists, and ``replace`` is False or it holds something else.
        BusyError: another process is preparing a corpus in it.
    """
    settings = settings or PrepareSettings()
    _check_inputs(splits, learn=tokenizer is None)
    refuse_inputs("the folder", folder, _named_files(splits))
    check_output_folder(folder, PREPARED, parts=_own_names(folder), replace=replace)
    with locked(folder, beside=True):
        return _prepare(splits, folder, settings, tokenizer, on_stage)


def _prepare(
    splits: Mapping[str, ParallelFiles],
    folder: Path,
    settings: PrepareSettings,
    tokenizer: Tokenizers | None,
    on_stage: OnStage,
) -> PreparedSummary:
    totals = {name: _count_pairs(name, files, on_stage) for name, files in splits.items()}
    with whole_folder(folder) as unfinished:
        if tokenizer is None:
            tokenizer = _learn(splits["train"], totals["train"], settings, on_stage)
        is_pair = isinstance(tokenizer, TokenizerPair)
        settings = changed(settings, vocabulary="separate" if is_pair else "joint")
        vocabulary, source_vocabulary = tokenizer.sizes
        counts = {
            name: _encode_split(
                name, files, totals[name], unfinished, tokenizer, settings, on_stage
            )
            for name, files in splits.items()
        }
        save_tokenizers(unfinished, tokenizer)
        document = CorpusDocument(
            settings=settings,
            token_type=token_type(max(vocabulary, source_vocabulary or 0)),
            tokenizer_sha256=tokenizers_digest(unfinished),
            splits=counts,
            inputs={name: [str(path) for path in files.paths] for name, files in splits.items()},
            files={path.name: path.stat().st_size for path in sorted(unfinished.iterdir())},
        )
        write_whole(unfinished / DOCUMENT_NAME, document.to_json().encode())
    return PreparedSummary(
        folder=folder,
        vocabulary=vocabulary,
        source_vocabulary=source_vocabulary,
        splits=counts,
    )


def _check_inputs(splits: Mapping[str, ParallelFiles], *, learn: bool) -> None:
    if not splits:
        raise ValueError("there is nothing to prepare: give at least one split")
    if learn and "train" not in splits:
        raise ValueError("the tokenizer is learned from train: give a split train or a tokenizer")
    for name, files in splits.items():
        if not SPLIT_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot name a split: use letters, digits, - and _, no leading - or _"
            )
        for path in files.paths:
            if not path.exists():
                raise FileNotFoundError(f"{path} ({name}): there is no such file")
            if path.is_dir():
                raise IsADirectoryError(f"{path} ({name}) is a folder; name a file")
            if not path.is_file():
                raise ValueError(
                    f"{path} ({name}) is not a file; it must be readable several times"
                )


def _own_names(folder: Path) -> set[str]:
    """The files that belong to the prepared corpus in a folder; none if there is no such corpus."""
    try:
        document = json.loads((folder / DOCUMENT_NAME).read_bytes())
        return (
            {DOCUMENT_NAME, *map(str, document["files"])} if document["format"] == FORMAT else set()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _named_files(splits: Mapping[str, ParallelFiles]) -> dict[str, Path]:
    return {
        f"the {side} of {name}": path
        for name, files in splits.items()
        for side, path in zip(SIDES, files.paths, strict=False)
    }


def _count_pairs(name: str, files: ParallelFiles, on_stage: OnStage) -> int:
    """Read a whole split once, to find its mistakes and its size."""
    stage, count = f"checking {name}", 0
    on_stage(stage, 0, None)
    for count, _ in enumerate(read_pairs(files), start=1):
        if count % CHUNK_PAIRS == 0:
            on_stage(stage, count, None)
    on_stage(stage, count, count)
    return count


def _learn(
    files: ParallelFiles, total: int, settings: PrepareSettings, on_stage: OnStage
) -> Tokenizers:
    def learn(sides: slice) -> Tokenizer:
        return _learn_one(_sample_lines(files, total, sides, settings, on_stage), files, settings)

    return learn_tokenizers(settings.vocabulary, learn)


def _learn_one(lines: Iterator[str], files: ParallelFiles, settings: PrepareSettings) -> Tokenizer:
    tokenizer = learn_tokenizer(lines, settings.vocab_size, min_frequency=settings.min_frequency)
    if tokenizer.size < settings.vocab_size:
        logger.warning(
            "the vocabulary has %s tokens, not %s as asked for (vocab_size): no more pairs of "
            "tokens occur %s times in %s",
            f"{tokenizer.size:,}",
            f"{settings.vocab_size:,}",
            settings.min_frequency,
            " and ".join(map(str, files.paths)),
        )
    return tokenizer


def _sample_lines(
    files: ParallelFiles, total: int, sides: slice, settings: PrepareSettings, on_stage: OnStage
) -> Iterator[str]:
    """These sides of pairs, spread evenly over the split, except lines too long to keep."""
    longest = settings.max_tokens * LONGEST_TOKEN

    def read() -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(read_pairs(files)):
            yield pair
            if number % CHUNK_PAIRS == 0:
                on_stage("reading words", number, total)

    for pair in spread_evenly(read(), total, settings.sample_lines // 2):
        yield from (line for line in pair[sides] if len(line) <= longest)
    on_stage("learning the tokenizer", 0, None)


def _encode_split(
    name: str,
    files: ParallelFiles,
    total: int,
    folder: Path,
    tokenizer: Tokenizers,
    settings: PrepareSettings,
    on_stage: OnStage,
) -> SplitCounts:
    stage = f"encoding {name}"
    longest = settings.longest_sentence(name)
    encoder = PairEncoder(tokenizer, longest, truncates=settings.long_sentences == "truncate")
    with ExitStack() as stack:
        writer = _SplitWriter(name, folder, tokenizer, stack)
        on_stage(stage, 0, total)
        for pairs in _chunks(read_pairs(files)):
            writer.add(encoder.encode(pairs))
            on_stage(stage, encoder.read, total)
    if encoder.read != total:
        raise ValueError(
            f"{files.source} changed while it was read: {total:,} pairs at first, now "
            f"{encoder.read:,}; prepare it when nobody writes to it"
        )
    return encoder.counts(name, where=f" in {files.source}")


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Lists of pairs, each with few pairs and (unless it is a single one) few characters."""
    chunk: list[tuple[str, str]] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if len(chunk) >= CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


class _SplitWriter:
    """Appends encoded pairs to the files of a split."""

    def __init__(self, name: str, folder: Path, tokenizers: Tokenizers, stack: ExitStack) -> None:
        self._token_type = token_type(max(tokenizers.source.size, tokenizers.target.size))

        def create(file_name: str) -> BinaryIO:
            return stack.enter_context(whole_file(folder / file_name))

        self._tokens = [create(tokens_name(name, side)) for side in SIDES]
        self._offsets = [create(offsets_name(name, side)) for side in SIDES]
        self._lines = create(lines_name(name))
        for file in self._offsets:
            file.write(np.zeros(1, dtype=OFFSET_TYPE).tobytes())
        self._written = [0, 0]

    def add(self, pairs: KeptPairs) -> None:
        self._lines.write(np.array(pairs.numbers, dtype=OFFSET_TYPE).tobytes())
        for side, sentences in enumerate((pairs.sources, pairs.targets)):
            self._append(side, sentences)

    def _append(self, side: int, sentences: list[list[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        ends = self._written[side] + np.cumsum(lengths)
        count = int(lengths.sum())
        tokens = np.fromiter(chain.from_iterable(sentences), dtype=self._token_type, count=count)
        self._tokens[side].write(tokens.tobytes())
        self._offsets[side].write(ends.astype(OFFSET_TYPE).tobytes())
        self._written[side] += count
