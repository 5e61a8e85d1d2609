"""The database: its tables, and the one place where transactions begin and end."""
