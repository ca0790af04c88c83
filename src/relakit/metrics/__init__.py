"""Scores of translations, each with its settings."""
