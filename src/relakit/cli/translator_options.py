"""Options of commands that translate, and the translator that they ask for."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from relakit.amounts import format_bytes
from relakit.analysis.settings import PAIR_WEIGHTS
from relakit.cli.completion import complete_model
from relakit.data.prepared_format import HELD_OUT_TOKENS
from relakit.decode.settings import (
    PRECISIONS,
    TOO_LONG_CHOICES,
    SearchSettings,
    known_device,
    known_precision,
    known_too_long,
)
from relakit.limits import checked_threads
from relakit.model.memory import FLOAT_BYTES
from relakit.threads import set_threads

if TYPE_CHECKING:
    from relakit.decode.translator import Translator
    from relakit.model.description import ModelDescription

SEARCH, SAMPLING, COMPUTATION = "The search", "Sampling", "The computation"

ModelFolder = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL",
        help="A model directory.",
        show_default=False,
        autocompletion=complete_model,
    ),
]
MoreModels = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Another model directory, for an ensemble: a token's probability is the mean over the "
        "models. All must have the same tokenizer. Repeatable.",
        autocompletion=complete_model,
    ),
]


def named_models(first: Path | None, others: Sequence[Path] | None) -> list[Path]:
    """The model directories that a command names, by MODEL, --model or both."""
    return [*([] if first is None else [first]), *(others or ())]


Beam = Annotated[
    int,
    typer.Option(
        help="How many hypotheses to follow at once; 1 is greedy search.", rich_help_panel=SEARCH
    ),
]
LengthPenalty = Annotated[
    float,
    typer.Option(
        help="alpha in log-probability / ((5 + length) / 6)^alpha.", rich_help_panel=SEARCH
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        help="Maximum tokens in a translation. \\[default: set by --length-factor and "
        "--length-margin]",
        rich_help_panel=SEARCH,
    ),
]
LengthFactor = Annotated[
    float,
    typer.Option(
        help="A translation has at most this many times the tokens of its source ...",
        rich_help_panel=SEARCH,
    ),
]
LengthMargin = Annotated[int, typer.Option(help="... plus this many.", rich_help_panel=SEARCH)]
MinLength = Annotated[
    int, typer.Option(help="Minimum tokens in a translation.", rich_help_panel=SEARCH)
]
WideEnds = Annotated[
    bool,
    typer.Option(
        "--wide-ends",
        help="Keep hypotheses that end among the best 2 * beam of a step, not only the best beam.",
        rich_help_panel=SEARCH,
    ),
]
PAIR_TOKENS: Final = (
    f"\\[default: {HELD_OUT_TOKENS}, or as many as fit into "
    f"{format_bytes(FLOAT_BYTES * PAIR_WEIGHTS)}]"
)
"""The default of --max-tokens where the attention of a pair is kept."""
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Most tokens of a line. \\[default: {HELD_OUT_TOKENS}, or the longest sentence that "
        "the model was trained on]",
        rich_help_panel=SEARCH,
    ),
]
TooLongName = Annotated[
    str,
    typer.Option(
        "--too-long",
        metavar="|".join(TOO_LONG_CHOICES),
        help="A line with more tokens is cut off there (crop), gives an empty line (skip), or ends "
        "the command (error); the first two are reported.",
        rich_help_panel=SEARCH,
    ),
]
BatchTokens = Annotated[
    int,
    typer.Option(
        help="Source tokens to translate at once, padding included.",
        rich_help_panel=COMPUTATION,
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Draw each token at random by its probability instead of searching for the best "
        "translation.",
        rich_help_panel=SAMPLING,
    ),
]
Temperature = Annotated[
    float,
    typer.Option(
        help="Below 1, likely tokens become likelier; above 1, unlikely tokens do.",
        rich_help_panel=SAMPLING,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        help="Draw only from this many of the likeliest tokens. \\[default: all]",
        rich_help_panel=SAMPLING,
    ),
]
TopP = Annotated[
    float,
    typer.Option(
        help="Draw only from the fewest likeliest tokens that hold this share of the probability.",
        rich_help_panel=SAMPLING,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Determines, with a line's number, what is drawn for it.", rich_help_panel=SAMPLING
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(help="CPU threads. \\[default: PyTorch's choice]", rich_help_panel=COMPUTATION),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        metavar="|".join(PRECISIONS),
        help="int8: one-byte weights, the fastest on a CPU; scores differ a little. auto: bf16 if "
        "the device computes with it, otherwise fp32.",
        rich_help_panel=COMPUTATION,
    ),
]
Device = Annotated[
    str, typer.Option(help="Where to compute, such as cpu or cuda:0.", rich_help_panel=COMPUTATION)
]
WithShortlist = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Choose only among the tokens that relakit shortlist found for the sentence's own "
        "tokens: faster, with nearly the same translations.",
        rich_help_panel=COMPUTATION,
    ),
]


SEARCH_OPTIONS: Final[dict[str, Any]] = {
    "beam": Beam,
    "length_penalty": LengthPenalty,
    "max_length": MaxLength,
    "length_factor": LengthFactor,
    "length_margin": LengthMargin,
    "min_length": MinLength,
    "wide_ends": WideEnds,
    "sample": Sample,
    "temperature": Temperature,
    "top_k": TopK,
    "top_p": TopP,
    "seed": Seed,
    "batch_tokens": BatchTokens,
}
"""The option for each field of `SearchSettings` but ``nbest``, which only some commands have."""


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all `SEARCH_OPTIONS`; it gets them as one argument, ``search``."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "search"]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(SearchSettings, name),
            annotation=option,
        )
        for name, option in SEARCH_OPTIONS.items()
    ]

    @wraps(command)
    def with_settings(**values: Any) -> None:
        given = {name: values.pop(name) for name in SEARCH_OPTIONS}
        _refuse_without_effect(given)
        command(**values, search=SearchSettings(**given))

    # typer makes the options from the signature.
    with_settings.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    return with_settings


def _refuse_without_effect(given: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that has no effect because of another."""
    overruled = {
        "--sample": ("beam", "wide_ends") if given["sample"] else (),
        "--max-length": ("length_factor", "length_margin") if given["max_length"] else (),
    }
    for option, names in overruled.items():
        for name in names:
            if given[name] != getattr(SearchSettings, name):
                other = f"--{name.replace('_', '-')}"
                raise ValueError(f"{other} has no effect with {option}; leave one of them out")


def describe_models(
    models: Sequence[Path],
    *,
    threads: int | None,
    precision: str,
    device: str,
    shortlist: bool = False,
) -> "list[ModelDescription]":
    """Read all but the weights of models that translate together, and check the options.

    This does not load torch, so that errors are reported at once.
    """
    from relakit.decode.members import check_same_kind
    from relakit.model.description import read_description

    if threads is not None:
        checked_threads("--threads", threads)
    known_precision(precision)
    known_device(device)
    described = [read_description(folder) for folder in models]
    for each in described:
        each.check_tokenizers()
    check_same_kind(described)
    if shortlist:
        from relakit.decode.shortlist import read_shortlist

        read_shortlist(models[0]).check_tokenizers(described[0].tokenizers, str(models[0]))
    return described


def load_translator(
    models: Sequence[Path],
    *,
    threads: int | None,
    precision: str,
    device: str,
    shortlist: bool = False,
) -> "Translator":
    """Read model directories and set PyTorch's threads; ValueError if the device is unusable."""
    describe_models(
        models, threads=threads, precision=precision, device=device, shortlist=shortlist
    )
    from relakit.decode.translator import Translator

    set_threads(threads)
    return Translator.load(
        *models, device=device, precision=known_precision(precision), shortlist=shortlist
    )


def fitting_lines(
    lines: Iterable[str],
    model: "Translator | ModelDescription",
    *,
    max_tokens: int | None,
    too_long: str,
    name: Path | str,
) -> Iterator[str]:
    """The lines, with --max-tokens and --too-long applied; says on stderr what was done."""
    from relakit.decode.long_lines import default_max_tokens, fit_lines

    if max_tokens is None:
        max_tokens = default_max_tokens(model.about.longest_sentence)
    return fit_lines(
        lines,
        model.tokenizers.source,
        max_tokens=max_tokens,
        too_long=known_too_long(too_long),
        name=name,
        tell=lambda message: typer.echo(f"relakit: {message}", err=True),
    )
