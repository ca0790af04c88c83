"""Every test starts from the same random state, on one thread."""

import os

import pytest
import torch
from hypothesis import settings

# Torch decides how fast an example is, and it is slow the first time: no deadline. In CI a failure
# has to come back when the run is repeated.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
