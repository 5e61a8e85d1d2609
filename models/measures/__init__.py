"""Measures: how good predicted label sets and rankings are.

Each measure is a small function of the true label sets Y, (n, k) sparse 0/1, and either the predicted sets,
of the same form, or the scores, (n, k) dense. All return plain numbers; a measure that is undefined (of no
examples, or a ranking measure where no example has a relevant label) is NaN, which ``evaluate`` leaves out.
Wherever scikit-learn has the same measure, the values are equal on untied scores and labelled examples.
"""
