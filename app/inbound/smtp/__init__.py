"""``covey smtp``: a content filter between mail servers."""
