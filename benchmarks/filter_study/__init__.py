"""What `benchmarks/filtering.py` compares, and its page."""
