"""Base classes of all learners, and the types of their interface."""

from models.base.learner import Learner, LearnerParameters
from models.base.training import Context, Monitor, Notes, Step
from models.serialization.state import State

__all__ = [
    "Context",
    "Learner",
    "LearnerParameters",
    "Monitor",
    "Notes",
    "State",
    "Step",
]
