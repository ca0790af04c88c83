"""The command line, `relakit`: one module per subcommand. Nothing in relakit imports it."""
