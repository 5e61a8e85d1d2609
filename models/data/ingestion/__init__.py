"""Turns a file into a stored data set, or only into a report on it.

- ``processing``: reads a file and checks what holds between records.
- ``ingest``: stores the examples of a file. ``in_memory``: keeps them in memory.
- ``inspect``: reads and checks a file without storing it.
- ``report``: every count and warning of a data set. ``duplicates``: finds equal documents.
- ``label_names``: labels that are probably mistakes. ``label_changes``: renames, removes and merges labels.
- ``string_set``: a set of strings that takes little memory, for the check of ids.
"""
