"""Choose the measures of an experiment, and reject those that its results would lack."""

from __future__ import annotations

from collections.abc import Sequence

from app.db import tables
from app.errors import Invalid
from app.experiments.schemas import ExperimentConfiguration, ExperimentCreate
from app.training.measures import measures_of_dataset
from models.measures.covering import COVERING_MEASURES, covering_measure
from models.measures.probabilities import PROBABILITY_MEASURES


def measures_of(request: ExperimentCreate) -> list[str]:
    """Return the names of the measures in the report: those of the request, then the error of each covering.

    Args:
        request: a request with its defaults filled in.
    """
    errors = [covering_measure("covering_error", name) for name in request.coverings]
    return list(dict.fromkeys([*request.measures, *errors]))


def fill_in_measures(
    body: ExperimentCreate, configurations: Sequence[ExperimentConfiguration], dataset: tables.Dataset
) -> list[str]:
    """Return the measures of a request once each, with the coverings in their names.

    Args:
        body: the request.
        configurations: its configurations, with their defaults filled in.
        dataset: a ready data set.

    Raises:
        Invalid: a measure is unknown, or no result of the experiment would have it.
    """
    of_coverings = {
        measure: [covering_measure(measure, name) for name in body.coverings] for measure in COVERING_MEASURES
    }
    decisions = [configuration.decision for configuration in configurations]
    fitting = [
        *measures_of_dataset(dataset, decisions),
        *(name for names in of_coverings.values() for name in names),
    ]
    names: list[str] = []
    for i, measure in enumerate(body.measures):
        if measure in of_coverings and body.coverings:
            names += of_coverings[measure]
        elif measure in fitting:
            names.append(measure)
        else:
            message = _reason(measure)
            message += f"; the measures are {', '.join(sorted(fitting))}"
            raise Invalid(message, errors=[(f"/measures/{i}", message)])
    return list(dict.fromkeys(names))


def _reason(measure: str) -> str:
    """Return why an experiment does not have a measure."""
    if measure in COVERING_MEASURES:
        return f"{measure} needs a covering; define one in coverings"
    if measure.partition(".")[0] in COVERING_MEASURES:
        return f"{measure} needs a covering of this name in coverings"
    if measure in PROBABILITY_MEASURES:
        return (
            f"{measure} needs probabilities, which only configurations with a decision such as auto have; "
            "it holds examples out"
        )
    return f"the data set has no measure {measure!r}"
