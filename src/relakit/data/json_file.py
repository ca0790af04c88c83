"""Settings in JSON files, read with an error that names the file."""

import json
from pathlib import Path
from typing import Any

from relakit.limits import MAX_JSON_BYTES


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON, or far larger than settings are.
    """
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path} has {size:,} bytes, which is no file of settings: they have at most "
            f"{MAX_JSON_BYTES:,}"
        )
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{path} is no JSON file of settings: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None
