"""Reproduce the papers' tables and figures, with one module for each part of ``docs/results.md``.

Each module of ``results.PARTS`` separates measuring from writing:

    TITLE = "MLPP, table II: ranking losses on RCV1"     # heading of the part
    RESULTS = {"table": _table, "epochs": _epochs}      # result -> function(bench) that measures its figures
    LONG = {"epochs"}                                     # optional: results that only --long measures
    def render(figures): ...                              # figures by name of the result -> Markdown

- A function of ``RESULTS`` gets a ``Bench`` (HTTP client of a running service; ``bench.quick`` asks for small
  versions) and returns figures that JSON can represent: numbers, names, lists and dicts with string keys. It
  returns numbers, not text, and draws its charts with ``bench.draw``.
- ``python -m benchmarks.papers PART`` measures all results of a part, and ``PART:RESULT`` measures one of them.
  Each result is stored in ``docs/results/PART.json`` as soon as it is measured, with the commit; then the page is
  rendered.
- ``render`` computes everything on the page from the stored figures: the cells of tables, the numbers in the
  sentences, and which sentence holds. A decimal number or a percentage in the text of a module is a placeholder;
  only the constants with the papers' figures are typed (``PAPER…``). It gets no service and reads no corpus.
- ``tests/test_results_page.py`` compares the page with what the modules render from the stored results, and
  refuses typed numbers in their texts.

To add a part, write such a module, add its name to ``results.PARTS``, and run it. Results of the library that
need no service can ignore ``bench``. Scripts outside this folder can use ``results.store`` in the same way.
"""
