"""Signals that ask a run to stop."""

import signal
import threading
from collections.abc import Iterator

import pytest

from relakit.train.interrupts import caught_interrupts


@pytest.fixture(autouse=True)
def _hangups_go_unnoticed() -> Iterator[None]:
    """What is not caught must not end the tests."""
    old = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, old)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_noted(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with caught_interrupts() as interrupts:
        assert interrupts.signal is None
        signal.raise_signal(number)
        assert interrupts.signal == number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_one_ends_the_run_at_once(second: signal.Signals) -> None:
    with caught_interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
        assert interrupts.signal == signal.SIGTERM


def test_a_hangup_is_never_a_second_one() -> None:
    with caught_interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.signal == signal.SIGTERM


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with caught_interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.signal is None


def test_another_thread_is_left_alone() -> None:
    """Only the main thread may ask for signals: a run in another goes on until its end."""
    before = signal.getsignal(signal.SIGTERM)
    noted: list[object] = []

    def run() -> None:
        with caught_interrupts() as interrupts:
            noted.extend([interrupts.signal, signal.getsignal(signal.SIGTERM)])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert noted == [None, before]
