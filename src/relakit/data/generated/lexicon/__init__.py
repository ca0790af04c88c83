"""The words of the generated corpus, as tables."""
