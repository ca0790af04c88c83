"""The learning rate of Vaswani et al. (2017): a linear warm-up, then the inverse square root."""


def learning_rate(update: int, *, dim: int, warmup: int, factor: float) -> float:
    """``factor * dim^-0.5 * min(update^-0.5, update * warmup^-1.5)``; updates count from 1."""
    if update < 1:
        raise ValueError(f"updates count from 1, got {update}")
    return float(factor * dim**-0.5 * min(update**-0.5, update * warmup**-1.5))
