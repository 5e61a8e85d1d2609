"""Boosting: committees of one-question rules ("does the document hold this term?"), one a round.

``adaboost_mh.py`` and ``mp_boost.py`` are the two learners; what they share is beside them: the questions
(``stumps.py``), the formulas of the three variants (``variants.py``), the compressed committee
(``hypothesis.py``) and early stopping (``stopping.py``). Each learner has a search of its own, because that
is where the time goes: ``shared_pivot.py`` (one pivot for all labels) and ``own_pivots.py`` (one a label).
"""
