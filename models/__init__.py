"""Machine learning: data sets, features, learners, decisions, measures and saved models.

This package does not depend on the HTTP API, the database or the job queue. You can use it on its own, for
example in a notebook: ``Pipeline(...).fit(examples)``.

Where to find what:

- ``pipeline``: fit on documents, predict, explain, evaluate. Start here.
- ``catalog``: every learner, its parameters and the decisions that suit it.
- ``base``: the base class of all learners. ``baselines``, ``boosting``, ``hierarchy`` and ``perceptrons``
  contain the learners.
- ``data``, ``mail``, ``text``, ``features``: from files to documents to feature vectors.
- ``labels``, ``decisions``, ``measures``: label sets, how scores become label sets, how good these are.
- ``artifact``, ``serialization``: saved models.
- ``trials``, ``splits``: train and test one learner on one split of a data set.
"""
