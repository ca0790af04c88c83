"""Numbers about attention: from captured weights to results."""

from relakit.analysis.sparsity import null_rate, sparsity_rate

__all__ = ["null_rate", "sparsity_rate"]
