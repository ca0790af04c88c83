"""The corpus of a recipe: already prepared, or prepared now in the run's own folder."""

from collections.abc import Callable
from pathlib import Path

from relakit.data.bpe_dropout import SplitAnew
from relakit.data.generated import Split, write_corpus
from relakit.data.languages import MOST_SENTENCES, LanguagePair
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.stages import OnStage, ignore_stage
from relakit.data.text_folder import find_splits
from relakit.data.tokenizer_pair import Tokenizers
from relakit.train.recipe import DataSection
from relakit.train.run_folder import TEXT


def open_corpus(
    data: DataSection,
    folder: Path,
    *,
    tokenizer: Callable[[], Tokenizers] | None = None,
    on_stage: OnStage = ignore_stage,
) -> PreparedCorpus:
    """Open the recipe's corpus; if it is text, prepare it in ``folder`` first.

    ``tokenizer`` reads the tokenizer to prepare it with; without it, one is learned from the text.
    A recipe with ``reverse`` uses the same prepared corpus, and swaps the sides when reading it.
    """
    if data.prepared is None and not folder.exists():
        files = _text_files(data, folder, on_stage)
        prepare(
            files,
            folder,
            settings=prepare_settings(data),
            tokenizer=tokenizer and tokenizer(),
            on_stage=on_stage,
        )
    corpus = PreparedCorpus.load(data.prepared or folder, reverse=data.reverse)
    # Without the first there is nothing to train on. The others must be those of today when the
    # training ends, even if the corpus is prepared again before that.
    for split in dict.fromkeys(("train", *corpus.splits)):
        corpus.split(split)
    return corpus


def languages(data: DataSection, corpus: PreparedCorpus | None) -> tuple[str, str]:
    """The languages translated from and to, as the corpus says, or else the recipe."""
    source, target = (data.target, data.source) if data.reverse else (data.source, data.target)
    if corpus is None:
        return source, target
    return corpus.source_language or source, corpus.target_language or target


def learn_languages(corpus: PreparedCorpus) -> LanguagePair | None:
    """What tells the languages of a corpus from others, learned from sentences all over it.

    None if its tokens are not text, as in made-up corpora: no reason to lose a trained model.
    """
    train = corpus.train
    chosen = range(0, len(train), -(-len(train) // MOST_SENTENCES))
    tokenizers = corpus.tokenizers
    sources = tokenizers.source.decode_batch(train.source(index) for index in chosen)
    targets = tokenizers.target.decode_batch(train.target(index) for index in chosen)
    if not any(sources) or not any(targets):
        return None
    return LanguagePair.learn(sources, targets)


def split_anew(data: DataSection, tokenizers: Tokenizers) -> SplitAnew | None:
    """The recipe's BPE-dropout; None if it has none.

    Raises:
        ValueError: the tokenizer is not a BPE.
    """
    rates = data.bpe_dropout
    if not rates.source and not rates.target:
        return None
    return SplitAnew(
        tokenizers.source,
        tokenizers.target,
        source_rate=rates.source,
        target_rate=rates.target,
    )


def prepare_settings(data: DataSection) -> PrepareSettings:
    """How the recipe wants its text prepared."""
    return PrepareSettings(
        vocab_size=data.vocab_size,
        vocabulary=data.vocabulary,
        max_tokens=data.max_tokens,
        long_sentences=data.long_sentences,
        source_language=data.source,
        target_language=data.target,
    )


def _text_files(data: DataSection, folder: Path, on_stage: OnStage) -> dict[str, ParallelFiles]:
    if data.folder is not None:
        return find_splits(data.folder, data.source, data.target)
    assert data.generated is not None, "a recipe has one place for its data"
    text = folder.with_name(TEXT)
    generated = data.generated
    sizes: dict[Split, int] = {
        "train": generated.train,
        "valid": generated.valid,
        "test": generated.test,
    }
    write_corpus(text, sizes=sizes, seed=generated.seed, replace=True, on_stage=on_stage)
    return find_splits(text, data.source, data.target)
