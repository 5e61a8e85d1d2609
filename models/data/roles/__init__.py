"""Which field of a row has which role.

- ``roles``: every role, and the fields that have them. To add a field of examples, begin here.
- ``table_columns``: the columns of a table, whose names are known before the first row.
- ``object_fields``: the fields of JSON objects, of which each can have others.
- ``row_numbers``: columns that only count the rows.
"""
