"""Reproduces the paper's tables and figures: which runs they need, the runs, and the page.

`studies` says which runs every table and figure needs, `plan` which of them are missing. `jobs`
starts them, each through `one_run`. `records` are the result files, and `page` is made from them
alone.
"""
