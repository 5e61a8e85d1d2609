"""Columns, indexes and constraints for polling workers, races, retention and keys."""

from __future__ import annotations

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _upgrade_jobs()
    _upgrade_references()
    _upgrade_retention()
    _upgrade_keys()


def downgrade() -> None:
    _downgrade_keys()
    _downgrade_retention()
    _downgrade_references()
    _downgrade_jobs()


def _upgrade_jobs() -> None:
    pass


def _downgrade_jobs() -> None:
    pass


def _upgrade_references() -> None:
    pass


def _downgrade_references() -> None:
    pass


def _upgrade_retention() -> None:
    pass


def _downgrade_retention() -> None:
    pass


def _upgrade_keys() -> None:
    pass


def _downgrade_keys() -> None:
    pass
