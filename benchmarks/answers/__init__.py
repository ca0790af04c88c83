"""Measures how commands respond to broken inputs and wrong usage."""
