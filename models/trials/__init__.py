"""Trials: train one learner on one split of a data set, and evaluate it."""

from models.trials.curve import STEP_GROWTH, Measured
from models.trials.precomputed_features import PrecomputedFeatures
from models.trials.trial import TrialMonitor, TrialResult, TrialStep, run_trial

__all__ = [
    "STEP_GROWTH",
    "Measured",
    "PrecomputedFeatures",
    "TrialMonitor",
    "TrialResult",
    "TrialStep",
    "run_trial",
]
