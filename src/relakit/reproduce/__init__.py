"""The paper's tables and figures, run again: which runs they need, the runs, and the page.

`studies` says what every table and figure needs, `plan` what of it is missing, `jobs` runs it,
each run by `one_run`; `records` are the result files, and `page` is made from them alone.
"""
