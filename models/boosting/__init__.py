"""Boosting: AdaBoost.MH and MP-Boost with decision stumps, and AdaBoost.LC for label coverings.

``adaboost_mh.py``, ``mp_boost.py`` and ``adaboost_lc.py`` are the learners.

The first two share the decision stumps (``stumps.py``), the formulas of the three variants
(``variants.py``), the compressed final hypothesis (``hypothesis.py``) and early stopping
(``early_stopping.py``). Most of the time goes into the search for pivots, so each has its own search: one
pivot for all labels (``adaboost_mh_rounds.py``) or one for each label (``mp_boost_rounds.py``).

AdaBoost.LC has coverings (``covering/``), templates (``templates.py``), and the sums W₊ and W₋
(``weight_sums.py``) over the distinct columns of the features (``distinct_columns.py``).
"""
