"""``python -m app`` is ``covey``."""

from app.cli import main

main()
