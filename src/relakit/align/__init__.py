"""Word alignment: links between the words of sentence pairs, read from a translation model."""
