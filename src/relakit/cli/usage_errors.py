"""Errors in option values, worded as they are for recipes and ``config.json``."""

from typing import Any

import typer
from typer.core import TyperGroup


class PlainUsage(TyperGroup):
    """typer's command group, without the wording of pydantic, which typer checks values with."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _in_our_words(error)
            raise


def _in_our_words(error: typer.BadParameter) -> str:
    found = getattr(error.__cause__, "errors", None)
    if found is None:  # typer's own wording
        return error.message
    from relakit.data.setting_errors import explain_value

    return explain_value(found()[0])
