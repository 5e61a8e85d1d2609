"""``python -m app`` is ``covey``."""

from app.cli.main import main

main()
