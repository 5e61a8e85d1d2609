"""What files of all formats have in common, below their content.

- ``input_file``: gzip and zstd decompression with limits, and random access.
- ``lines``: numbered lines, and their encoding.
- ``zip_archive``: the members of a zip. ``zip_names``: their names. ``zip_members``: which of them are data.
- ``containers``: files that no reader can use.
"""
