"""Logistic regression with a penalty and optional signs, by Newton's method. NumPy only.

It minimises the sum over rows of weight * log(1 + exp(-margin)), plus penalty / 2 times the squares
of the coefficients; the margin is +- (bias + row . coefficients). With a penalty there is always
one best answer, even if a line separates the groups. If signs are given, coefficients that would
get the wrong sign stay 0: those at 0 that would move the wrong way take no part in a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
_Loss: TypeAlias = Callable[[Vector], float]

MOST_STEPS: Final = 100
TOLERANCE: Final = 1e-9
"""Gradient per row below which it counts as zero."""
_HALVINGS: Final = 40
_LEAST_CURVATURE: Final = 1e-12


@dataclass(frozen=True)
class LogisticFit:
    """The coefficients that were found."""

    bias: float
    coefficients: Vector


def fit_logistic(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    penalty: float,
    signs: npt.ArrayLike | None = None,
) -> LogisticFit:
    """Fit the log-odds that the label is True; both labels weigh the same, however many rows each.

    Args:
        rows: numbers of a size of about 1, ``[rows, numbers]``.
        labels: True or False for each row.
        penalty: on the coefficients, not on the bias, relative to rows that weigh 1 on average;
            above 0.
        signs: for each number, 1 if its coefficient may not be below 0, -1 if it may not be above,
            0 if it may be anything; None: all may be anything.

    Raises:
        ValueError: NaN or infinity, a label without rows, or settings out of range.
    """
    matrix, is_true, signs = _checked(rows, labels, penalty, signs)
    weights = len(matrix) / 2 / np.where(is_true, is_true.sum(), (~is_true).sum())
    # The bias is one more coefficient, without a penalty or a sign.
    padded = np.column_stack([np.ones(len(matrix)), matrix])
    penalties = np.full(padded.shape[1], float(penalty))
    penalties[0] = 0.0
    signs = np.append(0.0, signs)
    sides = np.where(is_true, 1.0, -1.0)

    def loss(found: Vector) -> float:
        margins = sides * (padded @ found)
        return float(weights @ np.logaddexp(0.0, -margins) + found @ (penalties * found) / 2)

    found = np.zeros(padded.shape[1])
    current = loss(found)
    for _ in range(MOST_STEPS):
        shares = _sigmoid(padded @ found)
        gradient = padded.T @ (weights * (shares - is_true)) + penalties * found
        is_held = (found == 0) & (signs * gradient > 0)
        if np.abs(gradient[~is_held]).max() <= TOLERANCE * len(matrix):
            break
        curvature = weights * np.maximum(shares * (1 - shares), _LEAST_CURVATURE)
        hessian = (padded * curvature[:, None]).T @ padded + np.diag(penalties)
        step = _step(hessian, gradient, is_held, (found == 0) * signs)
        found, after = _shortened(loss, found, step, signs, current)
        if after >= current:
            break  # only rounding is left
        current = after
    return LogisticFit(float(found[0]), found[1:])


def _step(
    hessian: Matrix, gradient: Vector, is_held: npt.NDArray[np.bool_], signs_at_zero: Vector
) -> Vector:
    """Newton's step, without coefficients that are held or would move to the wrong side of 0."""
    while True:
        step, free = np.zeros(len(gradient)), ~is_held
        step[free] = np.linalg.lstsq(hessian[np.ix_(free, free)], gradient[free], rcond=None)[0]
        leaves = free & (signs_at_zero * step > 0)
        if not leaves.any():
            return step
        is_held = is_held | leaves


def _checked(
    rows: npt.ArrayLike, labels: npt.ArrayLike, penalty: float, signs: npt.ArrayLike | None
) -> tuple[Matrix, npt.NDArray[np.bool_], Vector]:
    matrix = np.asarray(rows, dtype=np.float64)
    is_true = np.asarray(labels, dtype=np.bool_)
    if matrix.ndim != 2 or is_true.shape != matrix.shape[:1]:
        raise ValueError(
            f"there must be a label for each row of numbers, got shapes {is_true.shape} and "
            f"{matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("rows must be numbers, got NaN or infinity")
    if is_true.all() or not is_true.any():
        raise ValueError(
            f"there must be rows of both labels, got {int(is_true.sum()):,} of True and "
            f"{int((~is_true).sum()):,} of False"
        )
    if not 0 < penalty < np.inf:
        raise ValueError(f"penalty must be a number above 0, got {penalty}")
    count = matrix.shape[1]
    given = np.zeros(count) if signs is None else np.asarray(signs, dtype=np.float64)
    if given.shape != (count,) or not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(f"signs must be {count} of -1, 0 and 1, got {given.tolist()}")
    return matrix, is_true, given


def _shortened(
    loss: _Loss, found: Vector, step: Vector, signs: Vector, current: float
) -> tuple[Vector, float]:
    """Shorten a step until it lowers the loss; Newton's may be too long at first."""
    size = 1.0
    for _ in range(_HALVINGS):
        moved = found - size * step
        moved[signs * moved < 0] = 0.0
        after = loss(moved)
        if after < current:
            return moved, after
        size /= 2
    return found, current


def _sigmoid(numbers: Vector) -> Vector:
    """The logistic function, without overflow."""
    half: Vector = 0.5 * (1 + np.tanh(numbers / 2))
    return half
