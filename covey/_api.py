"""The parts of the library that have a name in ``covey``."""

from __future__ import annotations

from covey import decisions, errors, measures
from models.artifact import load, save
from models.base import Context, Learner
from models.baselines.naive_bayes import NaiveBayes
from models.baselines.svm import SVM
from models.boosting.adaboost_lc import AdaBoostLC
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost
from models.catalog import describe as learners
from models.data.examples import Examples, ExampleSource, FeatureRows
from models.data.ingestion.in_memory import read_examples
from models.features import NumericFeatures, TextFeatures
from models.hierarchy.h_m3 import HM3
from models.hierarchy.h_rls import HRLS
from models.hierarchy.h_svm import HSVM
from models.labels import LabelTree
from models.mail import Email, MailDocument, read_email, read_message
from models.measures.evaluation import Evaluation, evaluate
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron
from models.pipeline import Pipeline, Prediction
from models.pipeline.partial_fit import partial_fit
from models.splits import stratified_folds, stratified_split

__version__: str

__all__ = [
    "HM3",
    "HRLS",
    "HSVM",
    "MLPP",
    "MMP",
    "SVM",
    "AdaBoostLC",
    "AdaBoostMH",
    "BinaryRelevancePerceptron",
    "Context",
    "Email",
    "Evaluation",
    "ExampleSource",
    "Examples",
    "FeatureRows",
    "LabelTree",
    "Learner",
    "MPBoost",
    "MailDocument",
    "NaiveBayes",
    "NumericFeatures",
    "Pipeline",
    "Prediction",
    "TextFeatures",
    "__version__",
    "decisions",
    "errors",
    "evaluate",
    "learners",
    "load",
    "measures",
    "partial_fit",
    "read_email",
    "read_examples",
    "read_message",
    "save",
    "stratified_folds",
    "stratified_split",
]
