"""Whether two models translate in opposite directions. No torch here."""

from relakit.model.description import ModelAbout


def check_opposite_languages(forward: ModelAbout, backward: ModelAbout) -> None:
    """Raise ValueError unless the second model translates in the other direction."""
    there = forward.source_language, forward.target_language
    back = backward.target_language, backward.source_language
    for side, one, two in zip(("source", "target"), there, back, strict=True):
        if one is not None and two is not None and one != two:
            other = "target" if side == "source" else "source"
            raise ValueError(
                f"the models must translate in opposite directions, but the {side} language of the "
                f"first is {one!r} and the {other} language of the second is {two!r}; train the "
                "second with relakit train RECIPE --reverse"
            )
