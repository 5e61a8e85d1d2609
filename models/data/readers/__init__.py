"""One reader a file format; each turns bytes into records and refuses what it cannot read by line."""
