"""``python -m relakit``: the command line, as `torchrun -m relakit` needs it."""

from relakit.cli.main import main

main()
