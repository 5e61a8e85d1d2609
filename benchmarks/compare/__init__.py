"""Compare variants of a pipeline on corpora; see ``__main__``."""
