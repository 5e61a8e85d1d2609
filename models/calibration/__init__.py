"""Probabilities: converts the scores of a learner to the probability of each label and of each label set."""

from models.calibration.calibration import Calibration
from models.calibration.fitting import fit_calibration, fit_label_calibration
from models.calibration.label_calibration import LabelCalibration

__all__ = ["Calibration", "LabelCalibration", "fit_calibration", "fit_label_calibration"]
