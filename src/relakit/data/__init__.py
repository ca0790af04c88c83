"""Corpora: read, generated, encoded, cut into batches. Needs no torch."""
