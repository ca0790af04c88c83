"""Training and translation speed of whole toolkits: relakit's attentions, and its peers."""
