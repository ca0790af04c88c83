"""Reads, generates and encodes corpora, and cuts them into batches. Needs no torch."""
