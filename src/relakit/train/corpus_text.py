"""What a run's own corpus was prepared from, so that a change of it is noticed."""

import json
from pathlib import Path

from relakit.data.json_file import read_json
from relakit.data.prepared_format import DOCUMENT_NAME
from relakit.data.text_folder import find_splits
from relakit.data.tokenizer_pair import SOURCE_TOKENIZER_FILE, TOKENIZER_FILE
from relakit.files.writing import write_whole
from relakit.train.recipe import Recipe
from relakit.train.run_folder import CORPUS, CORPUS_TEXT


def note_text(recipe: Recipe, folder: Path) -> None:
    """Write down what the corpus in a run's folder is going to be prepared from."""
    content = json.dumps(_files(recipe), indent=2)
    write_whole(folder / CORPUS_TEXT, f"{content}\n".encode())


def is_out_of_date(recipe: Recipe, folder: Path) -> bool:
    """Whether the text, or the model to start from, has changed since the corpus was prepared."""
    start = recipe.model.start_from
    try:
        prepared = (folder / CORPUS / DOCUMENT_NAME).stat().st_mtime_ns
        files = _files(recipe)
    except (OSError, ValueError):
        return False  # there is no corpus yet, or its text is gone
    if start is not None and not start.exists():
        return False
    noted = _noted(folder)
    if noted is None:
        return any(modified > prepared for _, modified in files.values())
    return noted != files


def _files(recipe: Recipe) -> dict[str, list[int]]:
    """The size of each file, and when it was modified; ValueError if there is no text."""
    data, start = recipe.data, recipe.model.start_from
    paths = [] if start is None else [start / TOKENIZER_FILE, start / SOURCE_TOKENIZER_FILE]
    if data.folder is not None:
        splits = find_splits(data.folder, data.source, data.target, quiet=True)
        paths += [path for split in splits.values() for path in split.paths]
    found = {str(path): path.stat() for path in paths if path.exists()}
    return {path: [status.st_size, status.st_mtime_ns] for path, status in found.items()}


def _noted(folder: Path) -> object:
    """What was written down; None for a corpus of an earlier version, which did not."""
    try:
        content: object = read_json(folder / CORPUS_TEXT)
    except (OSError, ValueError):
        return None
    return content
