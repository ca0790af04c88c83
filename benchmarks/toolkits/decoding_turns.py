"""Translation speed: all contenders get the same sentences in the same batches."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch

from relakit.bench.rounds import Contender, ContenderError, Field, Turn
from relakit.data.prepared_reader import PreparedCorpus
from relakit.decode.translator import Translator, choose_dtype
from relakit.model import ATTENTION_KINDS, ModelConfig, Transformer, load_model
from toolkits.decoding_cases import DecodingBatch, DecodingCase, Sentences, decoding_cases
from toolkits.models import bench_corpus, check_vocabulary, describe_model, model_configs
from toolkits.peer_weights import why_no_peer_has_it, write_peer_weights
from toolkits.peers import PeerPlace, Peers
from toolkits.settings import DecodingSettings, System
from workers import Worker, number_of

GENERATED_TRAIN: Final = 5000
"""Pairs to learn the tokenizer from if no corpus is given."""
GENERATED_TEST: Final = 1000


@dataclass(frozen=True)
class DecodingWork:
    """The cases by name, and how to search."""

    cases: Mapping[str, DecodingCase]
    beam: int
    length_penalty: float


class OwnDecoding:
    """relakit: what `relakit translate` calls, one batch at a time."""

    def __init__(self, translator: Translator, work: DecodingWork) -> None:
        self._translator = translator
        self._work = work

    def warm_up(self, case: str) -> None:
        self._translate(self._work.cases[case].batches[0])

    def run(self, case: str, number: int) -> Turn:
        batches = self._work.cases[case].batches
        start = time.perf_counter()
        outputs = [self._translate(batch) for batch in batches]
        return _turn(time.perf_counter() - start, batches, outputs)

    def _translate(self, batch: DecodingBatch) -> list[list[int]]:
        found = self._translator.translate_ids(
            batch.sentences,
            nbest=1,
            beam=self._work.beam,
            length_penalty=self._work.length_penalty,
            max_length=batch.max_length,
            min_length=batch.exact_length or 0,
            batch_tokens=sum(map(len, batch.sentences)) * len(batch.sentences) + 10**6,
        )
        return [hypotheses[0].tokens for hypotheses in found]


class PeerDecoding:
    """A peer with the softmax model's weights."""

    def __init__(self, peer: Worker, work: DecodingWork) -> None:
        self._peer = peer
        self._work = work

    def warm_up(self, case: str) -> None:
        self._translate(self._work.cases[case].batches[0])

    def run(self, case: str, number: int) -> Turn:
        batches = self._work.cases[case].batches
        answers = [self._translate(batch) for batch in batches]
        seconds = sum(number_of(answer, "seconds") for answer in answers)
        return _turn(seconds, batches, [answer["outputs"] for answer in answers])

    def _translate(self, batch: DecodingBatch) -> dict[str, Any]:
        answer = self._peer.ask(
            "decode",
            sentences=batch.sentences,
            beam=self._work.beam,
            batch_size=len(batch.sentences),
            max_length=batch.max_length + 1,  # with the end-of-sentence token
            exact_length=batch.exact_length,
            length_penalty=self._work.length_penalty,
        )
        outputs = answer.get("outputs")
        if not isinstance(outputs, list) or len(outputs) != len(batch.sentences):
            raise ContenderError(f"did not translate all of {len(batch.sentences)} sentences")
        return answer


def _turn(
    seconds: float, batches: Sequence[DecodingBatch], outputs: Sequence[list[list[int]]]
) -> Turn:
    """Count tokens in the same way for all: including sentence ends, unless the length is fixed."""
    tokens = 0
    for batch, translations in zip(batches, outputs, strict=True):
        lengths = [len(translation) for translation in translations]
        wanted = batch.exact_length
        if wanted is not None and set(lengths) != {wanted}:
            raise ContenderError(
                f"translated into {min(lengths)} to {max(lengths)} tokens where {wanted} were "
                "asked for"
            )
        tokens += sum(lengths) + (len(lengths) if wanted is None else 0)
    sentences = sum(len(batch.sentences) for batch in batches)
    return Turn(seconds, {"target_tokens": tokens, "sentences": sentences})


@contextmanager
def decoding_field(
    settings: DecodingSettings, place: PeerPlace, folder: Path
) -> Iterator[tuple[Field, list[DecodingCase]]]:
    """All contenders, ready to translate, and the cases; peers end with the block."""
    corpus = bench_corpus(settings, folder, train=GENERATED_TRAIN, test=GENERATED_TEST)
    makers = _translators(settings, corpus)
    tokenizer = next(iter(makers.values()))("fp32").tokenizer
    cases = decoding_cases(Sentences.of(corpus, settings.split, tokenizer), settings)
    work = DecodingWork({case.name: case for case in cases}, settings.beam, settings.length_penalty)
    weights = folder / "weights.safetensors"
    problem = _export(makers, weights)
    field = Field()
    with Peers(place, threads=settings.threads, folder=folder) as peers:
        for system in settings.systems():
            if system.is_ours:
                try:
                    translator = makers[system.attention](system.precision)
                except ValueError as error:
                    if system.precision != "int8":  # not every attention has int8
                        raise
                    field.notes[system.label] = str(error)
                    continue
                field.contenders[system.label] = OwnDecoding(translator, work)
                field.about[system.label] = describe_model(translator.model.config)
            elif problem is not None:
                field.notes[system.label] = problem
            else:
                start = _starter(system, peers, settings.threads, weights, work)
                field.enter(system.label, start)
        yield field, cases


def _starter(
    system: System, peers: Peers, threads: int, weights: Path, work: DecodingWork
) -> Callable[[], tuple[Contender, str]]:
    def start() -> tuple[Contender, str]:
        peer = peers.start(system.system)
        answer = peer.ask(
            "setup-decode", model=str(weights), threads=threads, precision=system.precision
        )
        return PeerDecoding(peer, work), str(answer.get("about", ""))

    return start


MakeTranslator = Callable[[str], Translator]
"""Makes a translator for a precision."""


def _translators(settings: DecodingSettings, corpus: PreparedCorpus) -> dict[str, MakeTranslator]:
    """Translators by attention name: models from disk, or new models with random weights."""
    if not settings.models:
        check_vocabulary(corpus, settings)
        return {
            name: _random_model(config, corpus, settings.seed)
            for name, config in model_configs(settings).items()
        }
    makers = {}
    tokenizers = {}
    for folder, name in zip(settings.models, settings.attentions, strict=True):
        makers[name] = _model_from(folder)
        tokenizers[folder] = makers[name]("fp32").tokenizer.to_json()
    if len(set(tokenizers.values())) > 1:
        raise ValueError(
            f"the models {', '.join(tokenizers)} have different tokenizers; compare models that "
            "were trained on one prepared corpus"
        )
    return makers


def _random_model(config: ModelConfig, corpus: PreparedCorpus, seed: int) -> MakeTranslator:
    def make(precision: str) -> Translator:
        torch.manual_seed(seed)
        dtype = choose_dtype(precision, torch.device("cpu"))  # type: ignore[arg-type]
        model = Transformer(config).eval().to(dtype)
        return Translator(model, corpus.tokenizer, in_bytes=precision == "int8")

    return make


def _model_from(folder: str) -> MakeTranslator:
    def make(precision: str) -> Translator:
        return Translator.load(folder, precision=precision)  # type: ignore[arg-type]

    return make


def with_models(settings: DecodingSettings) -> DecodingSettings:
    """The settings with the attentions and the vocabulary that the given models have."""
    names: dict[str, str] = {}
    vocabulary = settings.vocabulary
    for folder in settings.models:
        config = load_model(folder)[0].config
        name = attention_name(config)
        if name in names:
            raise ValueError(f"{names[name]} and {folder} both have {name} attention; give one")
        names[name] = folder
        vocabulary = max(vocabulary, config.vocabulary)
    return replace(settings, attentions=tuple(names), vocabulary=vocabulary)


def attention_name(config: ModelConfig) -> str:
    """One name, or the names of encoder, decoder and cross-attention if they differ."""
    names = [config.attention(kind) for kind in ATTENTION_KINDS]
    return names[0] if len(set(names)) == 1 else "/".join(names)


def _export(makers: Mapping[str, MakeTranslator], path: Path) -> str | None:
    """Write the softmax model's weights for the peers, or return why that is impossible."""
    if "softmax" not in makers:
        return "the peers need a model with softmax attention, and there is none"
    model = makers["softmax"]("fp32").model
    problem = why_no_peer_has_it(model.config)
    if problem is None:
        write_peer_weights(path, model)
    return problem
