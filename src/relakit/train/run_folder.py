"""What a training run's folder holds.

::

    OUT/recipe.json     what is trained
    OUT/text/           the generated corpus, if the recipe asks for one
    OUT/corpus/         the prepared corpus, unless the recipe names one
    OUT/text.json       the files that it was prepared from
    OUT/checkpoints/    the last few checkpoints
    OUT/log.jsonl       every update and validation
    OUT/tensorboard/    curves, if TensorBoard is installed
    OUT/model/          the model directory, when training is finished or was asked to stop
    OUT/result.json     verdict, scores and settings
"""

from typing import Final

from relakit.files.output_paths import RUN

RUNS: Final = "runs"
"""The folder that runs are kept in by default."""

RECIPE: Final = RUN.marker
TEXT: Final = "text"
CORPUS: Final = "corpus"
CORPUS_TEXT: Final = "text.json"
CHECKPOINTS: Final = "checkpoints"
LOG: Final = "log.jsonl"
CURVES: Final = "tensorboard"
MODEL: Final = "model"
RESULT: Final = "result.json"

RUN_ENTRIES: Final = (RECIPE, TEXT, CORPUS, CORPUS_TEXT, CHECKPOINTS, LOG, CURVES, MODEL, RESULT)
