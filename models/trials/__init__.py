"""Trials: train one learner on one split of the data and evaluate it."""

from models.trials.trial import STEP_GROWTH, SharedFeatures, Trial, TrialMonitor, TrialStep, try_out

__all__ = [
    "STEP_GROWTH",
    "SharedFeatures",
    "Trial",
    "TrialMonitor",
    "TrialStep",
    "try_out",
]
