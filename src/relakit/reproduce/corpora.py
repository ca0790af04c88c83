"""The corpora to train on at each scale, and with which recipe."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.data.generated import SPLITS
from relakit.data.text_folder import find_splits

Scale: TypeAlias = Literal["tiny", "deep", "paper"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)

DEMO: Final = "demo"
"""The corpus of the stability study; the paper's claims are not judged on it."""


def known_scale(name: str) -> Scale:
    """The name, if there is such a scale."""
    if name not in SCALES:
        raise ValueError(f"unknown scale {name!r}; choose one of {', '.join(SCALES)}")
    return name


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus in one direction of translation."""

    name: str
    """As in result files: ``multi30k-en-de``."""
    folder: str | None
    """Its folder under ``--data``; None if it is generated."""
    source: str
    target: str
    recipes: MappingProxyType[Scale, str]
    """The recipe for each scale that it is used at."""
    minutes: MappingProxyType[Scale, float]
    """How long a softmax run takes on one core, about; used until there are measurements."""

    @property
    def label(self) -> str:
        """The name that people see."""
        family = self.name.split("-")[0]
        titles = {"multi30k": "Multi30k", "europarl": "Europarl"}
        title = family if self.folder is None else titles.get(family, family.upper())
        return f"{title} {self.source}-{self.target}"

    def settings(self, data: Path) -> list[str]:
        """The settings for a recipe's ``[data]``, as ``--set`` takes them."""
        languages = [f"data.source={self.source}", f"data.target={self.target}"]
        if self.folder is None:
            return languages
        # Quoted, as a path may look like a number.
        folder = str(data / self.folder).replace("\\", "\\\\").replace('"', '\\"')
        return [f'data.folder="{folder}"', *languages]

    def why_missing(self, data: Path) -> str | None:
        """Why it cannot be used, if it cannot."""
        if self.folder is None:
            return None
        folder = data / self.folder
        if not folder.is_dir():
            return (
                f"there is no folder {folder} with the files of {self.label}; "
                "docs/reproduction.md says where to get them, --data names the folder they are in"
            )
        try:
            splits = find_splits(folder, self.source, self.target)
        except ValueError as error:
            return str(error)
        for split in SPLITS:
            if split not in splits:
                return (
                    f"{folder} must have one {split} set for {self.label}, it has "
                    f"{', '.join(splits)}; docs/reproduction.md lists the files"
                )
        return None


def _corpus(
    name: str,
    source: str,
    target: str,
    recipes: dict[Scale, str],
    minutes: dict[Scale, float],
    folder: str | None,
) -> Corpus:
    return Corpus(
        name=name,
        folder=folder,
        source=source,
        target=target,
        recipes=MappingProxyType(recipes),
        minutes=MappingProxyType(minutes),
    )


def _multi30k(source: str, target: str, *, deep: bool = False) -> Corpus:
    recipes: dict[Scale, str] = {"tiny": "multi30k-tiny"}
    minutes: dict[Scale, float] = {"tiny": 20}
    if deep:
        recipes["deep"] = "multi30k-deep"
        minutes["deep"] = 90
    name = f"multi30k-{source}-{target}"
    return _corpus(name, source, target, recipes, minutes, "multi30k")


def _wmt(name: str, source: str, target: str) -> Corpus:
    return _corpus(name, source, target, {"paper": name}, {"paper": 60 * 24 * 30}, name)


CORPORA: Final = MappingProxyType(
    {
        corpus.name: corpus
        for corpus in (
            _multi30k("en", "de", deep=True),
            _multi30k("en", "fr"),
            _multi30k("de", "en"),
            _multi30k("fr", "en"),
            _corpus(DEMO, "en", "de", {"tiny": "stability"}, {"tiny": 12}, None),
            _corpus("generated", "en", "de", {"deep": "generated-deep"}, {"deep": 60}, None),
            _corpus(
                "europarl-en-de",
                "en",
                "de",
                {"deep": "europarl-deep"},
                {"deep": 300},
                "europarl-en-de",
            ),
            _wmt("wmt14-en-de", "en", "de"),
            _wmt("wmt14-en-fr", "en", "fr"),
            _wmt("wmt18-en-fi", "en", "fi"),
            _wmt("wmt18-zh-en", "zh", "en"),
            _wmt("wmt16-ro-en", "ro", "en"),
        )
    }
)
"""All corpora by name."""
