"""The pipeline: features, learner and decision, fitted together on labelled documents."""

from models.pipeline.pipeline import (
    Explanation,
    Features,
    Phase,
    Pipeline,
    PipelineMonitor,
    Prediction,
    Progress,
    read_documents,
)

__all__ = [
    "Explanation",
    "Features",
    "Phase",
    "Pipeline",
    "PipelineMonitor",
    "Prediction",
    "Progress",
    "read_documents",
]
