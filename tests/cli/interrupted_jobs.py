"""Jobs of several shards that are interrupted on the way."""

import pytest

from relakit.shards.ledger import Ledger


def interrupt_after_two_shards(patch: pytest.MonkeyPatch) -> None:
    """Have the user press Ctrl-C when two shards are kept."""
    keep = Ledger.keep

    def keep_two(self: Ledger, *result: object) -> None:
        if len(self.finished) == 2:
            raise KeyboardInterrupt
        keep(self, *result)  # type: ignore[arg-type]

    patch.setattr(Ledger, "keep", keep_two)
