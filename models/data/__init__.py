"""Labelled examples: in memory, in files and in the store.

Where to look:

- ``examples``: examples in memory, and the interface of every source of examples.
- ``record``: one example as a reader yields it, and the checks of names, numbers and splits.
- ``digests``: which documents are the same. ``duplicates``: counts of equal documents.
- ``limits``: the limits on the content of a file. ``options``: how a user describes the fields of a file.
- ``store``: the Parquet file of a data set.
- ``export``: a data set as JSON Lines.
- ``ingestion/``: turns a file into a data set; ``ingestion/report.py`` defines every count and warning.
- ``readers/``: one module for each file format; ``readers/registry.py`` lists them.
- ``record_mapper``: turns the rows of a reader into records, for all formats with named fields.
- ``roles/``: which field has which role; ``roles/roles.py`` lists them. ``values/``: what a field contains.
- ``files/``, ``syntax/``, ``mail_stores/``: what readers share with each other.

Imports run ``ingestion -> readers -> record_mapper -> roles -> values -> record`` and never back.
"""
