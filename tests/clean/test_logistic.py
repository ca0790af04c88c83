"""Logistic regression, against answers that are known without it."""

import numpy as np
import pytest

from relakit.clean.logistic import fit_logistic


def table(counts: dict[tuple[int, bool], int]) -> tuple[np.ndarray, np.ndarray]:
    rows = [(float(x), label) for (x, label), count in counts.items() for _ in range(count)]
    return np.array([[x] for x, _ in rows]), np.array([label for _, label in rows])


def test_of_a_table_it_is_the_odds_ratio() -> None:
    """With one number that is 0 or 1, the answer can be written down."""
    rows, labels = table({(0, False): 30, (0, True): 10, (1, False): 5, (1, True): 35})
    fit = fit_logistic(rows, labels, penalty=1e-9)
    # 45 rows are True and 35 are not, and both weigh the same.
    assert fit.bias == pytest.approx(np.log(10 / 45) - np.log(30 / 35), abs=1e-5)
    assert fit.coefficients[0] == pytest.approx(np.log(35 / 5) - np.log(10 / 30), abs=1e-4)


@pytest.mark.parametrize("signs", [None, (0, 0, 0), (1, 1, -1), (-1, 1, 1), (0, 1, 0)])
def test_no_neighbour_is_better(signs: tuple[int, ...] | None) -> None:
    """Whatever is changed a little, within the signs, makes the penalised loss greater."""
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(200, 3)) @ [[1, 0.5, 0], [0, 1, 0.5], [0.5, 0, 1]]
    labels = rows @ [1.0, -2.0, 0.5] + draw.logistic(size=200) > 0.5
    weights = np.where(labels, 100 / labels.sum(), 100 / (~labels).sum())

    def loss(found: np.ndarray) -> float:
        margins = np.where(labels, 1, -1) * (rows @ found[1:] + found[0])
        return float(weights @ np.log1p(np.exp(-margins)) + 2.0 * found[1:] @ found[1:] / 2)

    fit = fit_logistic(rows, labels, penalty=2.0, signs=signs)
    best = np.array([fit.bias, *fit.coefficients])
    bounds = np.array([0, *(signs or (0, 0, 0))])
    assert (bounds * best >= 0).all()
    for direction in np.vstack([np.eye(4), -np.eye(4)]):
        neighbour = best + 1e-3 * direction
        if (bounds * neighbour >= 0).all():
            assert loss(neighbour) > loss(best)


def test_a_number_that_speaks_the_other_way_has_no_weight() -> None:
    rows, labels = table({(0, False): 30, (0, True): 10, (1, False): 5, (1, True): 35})
    assert fit_logistic(rows, labels, penalty=1.0, signs=[-1]).coefficients.tolist() == [0.0]
    free = fit_logistic(rows, labels, penalty=1.0).coefficients
    assert fit_logistic(rows, labels, penalty=1.0, signs=[1]).coefficients == pytest.approx(free)


@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_what_a_line_separates_stays_finite(factor: float) -> None:
    rows = factor * np.array([[-2.0], [-1.0], [1.0], [2.0]])
    fit = fit_logistic(rows, [False, False, True, True], penalty=1.0)
    assert np.isfinite(fit.coefficients).all()
    log_odds = rows @ fit.coefficients + fit.bias
    assert (log_odds > 0).tolist() == [False, False, True, True]


def test_numbers_that_repeat_each_other_share_the_weight() -> None:
    rows = np.array([[-1.0, -1.0], [0.5, 0.5], [-0.5, -0.5], [1.0, 1.0]])
    fit = fit_logistic(rows, [False, False, True, True], penalty=1.0)
    assert fit.coefficients[0] == pytest.approx(fit.coefficients[1])


@pytest.mark.parametrize(
    ("rows", "labels", "penalty", "says"),
    [
        ([[1.0], [np.nan]], [True, False], 1.0, "rows must be numbers"),
        ([[1.0], [2.0]], [True, True], 1.0, "rows of both labels, got 2 of True and 0 of False"),
        ([[1.0], [2.0]], [True], 1.0, "a label for each row"),
        ([[1.0], [2.0]], [True, False], 0.0, "penalty must be"),
    ],
)
def test_wrong_use(rows: list, labels: list, penalty: float, says: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=says):
        fit_logistic(rows, labels, penalty=penalty)


@pytest.mark.parametrize("signs", [[1, 1], [2], []])
def test_signs_that_are_none(signs: list[int]) -> None:
    with pytest.raises(ValueError, match="signs must be 1 of -1, 0 and 1, got"):
        fit_logistic([[1.0], [2.0]], [True, False], penalty=1.0, signs=signs)
