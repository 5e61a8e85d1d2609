"""The console: pages for people, below ``/console``.

The server renders the pages, which only read; they call the same functions as the routes of the API. Scripts
of the pages change something by requests to the API, which accepts the session of the console in place of an
API key; see ``app.console.sessions``.
"""
