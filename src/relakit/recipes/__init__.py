"""The recipes that come with relakit, one TOML file each."""

from importlib.resources import files


def recipe_names() -> list[str]:
    """The recipes that come with relakit."""
    names = (entry.name for entry in files(__name__).iterdir())
    return sorted(name[: -len(".toml")] for name in names if name.endswith(".toml"))
