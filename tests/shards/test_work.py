"""A work travels as JSON, and is built by the same relakit alone."""

from dataclasses import replace

import pytest
from shard_works import Shout, shouting

from relakit.shards.work import WorkDescription


def test_it_travels() -> None:
    work = shouting(refused="x")
    arrived = WorkDescription.from_json(work.to_json())
    assert arrived == work
    assert isinstance(arrived.build(), Shout)


def test_another_relakit_refuses_it() -> None:
    other = replace(shouting(), relakit="9.9")
    with pytest.raises(
        ValueError, match=r"has relakit \d.*, where the command was given it is 9.9"
    ):
        other.build()
