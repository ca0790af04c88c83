"""Cleaning parallel corpora: what a translation model says about each sentence pair."""
