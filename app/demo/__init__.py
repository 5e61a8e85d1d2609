"""The demonstration: the main job, from labelled mail to a routed message, on a service of its own."""
