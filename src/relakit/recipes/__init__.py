"""The recipes that come with relakit, one TOML file each."""
