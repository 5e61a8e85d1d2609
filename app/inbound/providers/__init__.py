"""E-mail providers that post messages: a delivery is verified and reduced to its message."""
