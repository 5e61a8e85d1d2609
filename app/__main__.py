"""Run the command ``covey`` as ``python -m app``."""

from app.cli.main import main

main()
