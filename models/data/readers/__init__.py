"""Reads files: one module for each format turns bytes into records and reports bad records by line.

Formats: ``jsonl``, ``csv``, ``parquet``, ``svmlight``, ``arff``, ``fasttext``, ``mbox`` and ``eml_zip``, as
listed in ``registry``. ``detection`` finds the format from the content. ``reading`` reads a file of a format,
also in a zip.

Shared by the formats:

- ``input_file``: gzip and zstd decompression with limits, and random access.
- ``lines``: numbered lines. ``table``: rows of named columns. ``zip_archive``: members of a zip.
- ``values``: ids, splits and labels. ``label_cells`` and ``label_syntax``: labels in one cell.
- ``mailbox_file``: messages of an mbox file. ``mail_store``: a store of mail, with ``mail_copies`` of one
  message. ``mail_labels``: labels in header fields.
- ``mail_folders``: what each file in a folder of mail is. ``zip_names``: names of the members of a zip.
- ``options``: base classes of the options of a format.
- ``zip_members``: which members of a zip are data. ``containers``: files that no reader can use.
- ``arff_syntax``, ``arff_labels`` and ``mulan_xml``: the parts of an ARFF data set.

``label_tree`` reads the file of ``child,parent`` lines that defines a label tree.
"""
