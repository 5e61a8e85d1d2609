"""Base classes of all learners, and the types of their interface.

To write a learner, subclass ``Learner`` (or ``base.incremental.IncrementalLearner``) and register the class
in ``models.catalog``.
"""

from models.base.learner import Learner, LearnerParameters
from models.base.steps import Training
from models.base.training import Context, Monitor, Problem, Step, TrainingSummary, ValidationSet
from models.serialization.state import State

__all__ = [
    "Context",
    "Learner",
    "LearnerParameters",
    "Monitor",
    "Problem",
    "State",
    "Step",
    "Training",
    "TrainingSummary",
    "ValidationSet",
]
