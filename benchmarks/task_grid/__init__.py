"""Tasks beyond translation: the runs of a grid of attentions and seeds, and the page about them."""
