"""The encoder-decoder Transformer, its settings and its directory on disk."""
