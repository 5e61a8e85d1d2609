"""The pipeline: features, learner and decision, fitted together on labelled documents."""

from models.features.documents import read_documents
from models.pipeline.explanation import ExplainedTerm, Explanation
from models.pipeline.pipeline import Pipeline
from models.pipeline.prediction import Prediction, ScoredDocuments
from models.pipeline.progress import Phase, PipelineMonitor, Progress
from models.pipeline.ranking import Ranking
from models.pipeline.training_set import FeatureMatrices, Features, TrainingSet, fit_features

__all__ = [
    "ExplainedTerm",
    "Explanation",
    "FeatureMatrices",
    "Features",
    "Phase",
    "Pipeline",
    "PipelineMonitor",
    "Prediction",
    "Progress",
    "Ranking",
    "ScoredDocuments",
    "TrainingSet",
    "fit_features",
    "read_documents",
]
