"""What `benchmarks/alignment.py` compares, and its page."""
