"""Scores of clean pairs and noise that are made up, so that it is known what tells them apart."""

import numpy as np

from relakit.clean.calibrating import Origin
from relakit.clean.clean_sample import PlantedPair
from relakit.data.noise_draw import CLEAN

ORIGIN = Origin(
    files=("a.en", "a.de"),
    candidates=900,
    are_known=True,
    seed=1,
    scored_with={"MODEL/config.json": "0" * 64, "--max-tokens": 9},
)
KINDS = ("shuffled", "truncated")
Columns = dict[str, np.ndarray]


def sample(
    count: int = 300, seed: int = 0, contaminated: float = 0.0
) -> tuple[list[PlantedPair], Columns]:
    """Each pair clean, shuffled and truncated; some that are called clean are shuffled, really."""
    draw = np.random.default_rng(seed)
    pairs, rows = [], []
    for origin in range(count):
        part = "held out" if origin % 3 == 2 else "fit"
        is_bad = draw.random() < contaminated
        for label in (CLEAN, *KINDS):
            pairs.append(PlantedPair("a", "b", label, part, origin))
            rows.append(_scores(draw, label == "shuffled" or is_bad, label == "truncated"))
    return pairs, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _scores(draw: np.random.Generator, shuffled: bool, truncated: bool) -> dict[str, float]:
    words = float(draw.integers(5, 20))
    kept = 0.5 if truncated else 1.0
    noise = draw.normal(size=3)
    return {
        "cross_entropy": 2 + 0.5 * noise[0] + 3 * shuffled,
        "end_loss": float(np.exp(-2 + 0.3 * noise[1] + 4 * truncated)),
        "source_words": words,
        "target_words": max(1.0, round(words * kept)),
        "word_ratio": max(1.0, round(words * kept)) / words,
        "character_ratio": kept * float(np.exp(0.1 * noise[2])),
        "null_rate": 0.0,
        "target_language": float("nan"),
    }
