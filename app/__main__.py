"""Run the command ``covey`` as ``python -m app``."""

from app.cli.entry import main

main()
