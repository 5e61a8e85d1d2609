"""Reproduce the papers' tables and figures: one module for each paper or study, on one frame.

A module declares its ``PARTS``, the sections of ``docs/background/results.md``: corpora, learners,
parameters, measures, the paper's own figures, and the tables. ``frame.Part`` says what a part consists of.

- ``python -m benchmarks.papers PART`` measures the results of a part, and ``PART:RESULT`` measures one of
  them. Each is stored in ``docs/background/results/PART.json`` as soon as it is measured, with the commit;
  then the page is rendered.
- Tables stand between marks in the page and are rendered from the stored figures. Sentences are written in
  the page.
- ``tests/test_results_page.py`` compares the page with what the parts render.

To add a part, write it into ``PARTS`` of a module, name a new module in ``__main__``, and put the marks into
the page.
"""
