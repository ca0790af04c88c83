"""What has parameters: the attention module, its norms and variants, conversion and capture."""
