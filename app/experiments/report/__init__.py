"""Reports of experiments: built from the results of cells, rendered as JSON, Markdown, CSV and HTML."""
