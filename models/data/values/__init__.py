"""Turns what a file states in one field into a value of an example: one rule for the readers of all formats.

- ``scalars``: ids, splits, weights, folds, selections, numbers and flags.
- ``labels``: the labels of an example. ``label_cells`` and ``label_syntax``: labels in one cell.
- ``documents``: texts, features and e-mails.

A missing value is None, NaN or an empty text: frames write it in one of these forms, depending on the format.
"""
