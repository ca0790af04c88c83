"""Benchmarks of attention: cases, contenders, interleaved timing, results and plots.

Importing the package loads no torch; the modules that compute do.
"""
