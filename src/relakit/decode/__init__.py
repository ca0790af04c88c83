"""Beam search and translation."""
