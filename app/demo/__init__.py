"""The demonstration: from labelled mail to routed messages, on a temporary service."""
