"""Reads files: one module for each format turns bytes into records and reports bad records by line.

Formats: ``jsonl``, ``csv``, ``parquet``, ``svmlight``, ``arff``, ``fasttext``, ``mbox`` and ``eml_zip``, as
listed in ``registry``. ``detection`` finds the format from the content. ``reading`` reads a file of a format,
also in a zip. The module of a format does not import that of another one.

Readers of formats with named fields pass rows to ``models.data.record_mapper``, which knows the fields of an
example. ``annotation_tools`` turns the JSON of such tools into these fields. ``label_tree`` reads the file of
``child,parent`` lines that defines a label tree.
"""
