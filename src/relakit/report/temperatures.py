"""The temperature at which the diversity of heads is shown by layer."""

from collections.abc import Sequence

from relakit.analysis.results import KindResult, ModelAnalysis


def shown_temperature(result: KindResult) -> str:
    """The first temperature, as the results name it; attention that sums to 1 has only "1"."""
    return next(iter(result.diversity), "")


def temperature_note(analyses: Sequence[ModelAnalysis]) -> str:
    """For captions: one temperature for all models, or each model's own."""
    by_model = {
        analysis.name: list(dict.fromkeys(filter(None, map(shown_temperature, analysis.kinds))))
        for analysis in analyses
    }
    different = {tuple(temperatures) for temperatures in by_model.values()}
    if len(different) == 1 and len(only := different.pop()) <= 1:
        return f"at temperature {only[0]}" if only else "at no temperature"
    texts = [
        f"{' and '.join(temperatures)} ({name})"
        for name, temperatures in by_model.items()
        if temperatures
    ]
    return f"at temperature {', '.join(texts)}"
