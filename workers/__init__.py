"""The Celery side: thin tasks that call what ``app`` and ``models`` offer; no job is ever lost here."""
