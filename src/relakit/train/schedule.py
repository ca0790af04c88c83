"""The learning rate of Vaswani et al. (2017): a linear warm-up, then the inverse square root.

A run of known length may cool down at its end. The weights then settle, and a short run gains what
would otherwise take it many more updates.
"""


def learning_rate(
    update: int,
    *,
    dim: int,
    warmup: int,
    factor: float,
    cooldown: float = 0.0,
    updates: int | None = None,
) -> float:
    """``factor * dim^-0.5 * min(update^-0.5, update * warmup^-1.5)``; updates count from 1.

    Args:
        update: number of the update to be made.
        dim: width of the model.
        warmup: updates until the peak.
        factor: scales the whole schedule.
        cooldown: share of all updates, at the end, over which the rate also falls linearly to 0.
        updates: how many there are in all; needed for a cooldown.
    """
    if update < 1:
        raise ValueError(f"updates count from 1, got {update}")
    rate = float(factor * dim**-0.5 * min(update**-0.5, update * warmup**-1.5))
    if not cooldown:
        return rate
    if updates is None:
        raise ValueError("a cooldown needs the number of updates")
    left = updates - update + 1
    return rate * min(1.0, left / (cooldown * updates))
