"""Beam search and translation."""

from relakit.decode.beam import Ended, SearchSettings
from relakit.decode.translator import Hypothesis, Translator

__all__ = ["Ended", "Hypothesis", "SearchSettings", "Translator"]
