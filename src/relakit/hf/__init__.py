"""Rectified linear attention in Hugging Face models: ``relakit.hf.convert(model)``.

Needs the extra ``relakit[hf]``. Importing this package registers the attention with transformers
under the name ``"rela"``; docs/huggingface.md says what works.
"""

try:
    import transformers as _transformers  # noqa: F401
except ImportError as error:
    raise ImportError(
        "relakit.hf needs the package transformers; install it with pip install 'relakit[hf]'"
    ) from error

from relakit.analysis.text_results import TextAnalysis, TextView
from relakit.hf.analyze import analyze
from relakit.hf.convert import convert
from relakit.hf.loading import from_pretrained
from relakit.hf.registration import NAME, register
from relakit.hf.report import report

__all__ = [
    "NAME",
    "TextAnalysis",
    "TextView",
    "analyze",
    "convert",
    "from_pretrained",
    "register",
    "report",
]

register()
