"""Scores for translations, each with its settings."""
