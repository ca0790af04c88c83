"""Modules with parameters: attention, its norms and variants; and conversion and capture."""
