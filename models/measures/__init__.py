"""Measures of the quality of predicted label sets and rankings.

Each measure is a function of the true label sets Y, (n, k) sparse 0/1, and of the predicted label sets in the
same form or the scores, (n, k) dense. It returns a number, or NaN if the measure is undefined: there are no
examples, or no example has a relevant label and the measure is a ranking measure. ``evaluate`` omits
undefined measures. If scikit-learn has the same measure, the values are equal for labelled examples and
distinct scores.
"""
