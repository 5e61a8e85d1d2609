"""The processes of the API, and the limits of their connections."""
