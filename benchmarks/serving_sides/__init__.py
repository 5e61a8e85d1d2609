"""Parts of ``benchmarks/serving.py``: the servers that it compares, the load, and the table of goals."""
