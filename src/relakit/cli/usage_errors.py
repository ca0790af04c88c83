"""Wrong values of options, in the words that recipes and ``config.json`` have for them."""

from typing import Any

import typer
from typer.core import TyperGroup


class PlainUsage(TyperGroup):
    """typer's group of commands, without the words of pydantic, which typer checks values with."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _in_our_words(error)
            raise


def _in_our_words(error: typer.BadParameter) -> str:
    found = getattr(error.__cause__, "errors", None)
    if found is None:  # typer's own words
        return error.message
    from relakit.data.setting_errors import explain_value

    return explain_value(found()[0])
