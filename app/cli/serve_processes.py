"""``covey api`` with several processes: a supervisor without threads and connections.

It holds the listening socket. It starts the processes, and restarts them if they die. On SIGHUP, it replaces
them one by one: the old process stops when the new one is ready, so no request is lost. On SIGTERM, it stops
all of them.
"""

from __future__ import annotations

from app import logs
from app.cli.errors import CommandError
from app.cli.import_once import import_once
from app.cli.listening import listen
from app.cli.open_database import open_database
from app.db import schema
from app.keys.service import AuthenticationRequiredError, require_keys
from app.server.api_processes import ApiProcesses
from app.server.supervisor import supervise
from app.settings import Settings


def serve_processes(settings: Settings) -> None:
    """Serve the API with several processes until a signal stops them.

    Args:
        settings: settings of the service; the processes read the same settings from the environment.

    Raises:
        CommandError: the database is damaged, unavailable or not migrated, the service needs API keys, or the
            address cannot be used.
    """
    logs.configure(settings)
    with open_database(settings) as db:
        schema.require_head(db.engine)
        try:
            require_keys(settings, db)
        except AuthenticationRequiredError as error:
            raise CommandError(str(error)) from error
    with listen(settings) as listener, ApiProcesses(settings, listener) as api:
        import_once(api.shared_dir)
        supervise(api.children, api.children)
