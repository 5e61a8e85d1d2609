"""The settings of the service, and what their values must satisfy."""

from app.settings.settings import (
    CLIENT_VARIABLES,
    GIB,
    KIB,
    MIB,
    PREFIX,
    PROTOCOLS,
    ROLES,
    Protocol,
    Role,
    Settings,
    get_settings,
    invalid_settings,
    split,
    unknown_variables,
)

__all__ = [
    "CLIENT_VARIABLES",
    "GIB",
    "KIB",
    "MIB",
    "PREFIX",
    "PROTOCOLS",
    "ROLES",
    "Protocol",
    "Role",
    "Settings",
    "get_settings",
    "invalid_settings",
    "split",
    "unknown_variables",
]
