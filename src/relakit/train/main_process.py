"""Which of the processes that torchrun started this is, found without torch."""

import os


def is_main_process() -> bool:
    """Whether this is the process that writes files, which is known before it joins the others."""
    is_alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    return is_alone or int(os.environ.get("RANK", "0")) == 0
