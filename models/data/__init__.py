"""Labelled examples: in memory, in files and in the store.

Where to look:

- ``examples``: examples in memory, and the interface of every source of examples.
- ``record``: one example as a reader yields it, and the checks of names, numbers and splits.
- ``digests``: which documents are the same. ``duplicates``: counts of equal documents.
- ``limits``: the limits on the content of a file.
- ``store``: the Parquet file of a data set.
- ``export``: a data set as JSON Lines.
- ``readers/``: one module for each file format; ``readers/registry.py`` lists them.
- ``ingestion/``: turns a file into a data set; ``ingestion/report.py`` defines every count and warning.

Imports run ``ingestion -> readers -> data`` and never back.
"""
