"""Learning alone: text, features, learners, decisions, measures, the saved model.

Nothing here knows the web, a database or a queue. ``Pipeline(...).fit(examples)`` in a notebook is a
supported use.
"""
