"""The benchmark of attention, and what all benchmarks share: rounds, results, tables, plots.

Importing the package does not load torch; the modules that compute do.
"""
