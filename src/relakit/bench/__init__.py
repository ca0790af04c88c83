"""The attention benchmark, and what all benchmarks share: rounds, results, tables, plots.

Importing the package does not load torch; only the modules that compute load it.
"""
