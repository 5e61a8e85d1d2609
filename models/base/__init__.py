"""Base classes of all learners, and the types of their interface."""

from models.base.learner import Learner, LearnerParameters
from models.base.training import Context, Monitor, Step, TrainingSummary
from models.serialization.state import State

__all__ = [
    "Context",
    "Learner",
    "LearnerParameters",
    "Monitor",
    "State",
    "Step",
    "TrainingSummary",
]
