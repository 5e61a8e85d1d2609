"""People who sign in with an OpenID provider, and their roles."""
