"""The database: tables, schema migrations and transactions."""
