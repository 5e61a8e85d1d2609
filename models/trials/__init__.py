"""Trials: train one learner on one split of the data and evaluate it."""

from models.trials.trial import (
    STEP_GROWTH,
    PrecomputedFeatures,
    TrialMonitor,
    TrialResult,
    TrialStep,
    run_trial,
)

__all__ = [
    "STEP_GROWTH",
    "PrecomputedFeatures",
    "TrialMonitor",
    "TrialResult",
    "TrialStep",
    "run_trial",
]
