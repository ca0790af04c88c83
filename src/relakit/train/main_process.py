"""Which of the processes that torchrun started this is, found without torch."""

import os


def process_count() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Whether this is the process that writes files; known before it joins the others."""
    return process_count() == 1 or int(os.environ.get("RANK", "0")) == 0
