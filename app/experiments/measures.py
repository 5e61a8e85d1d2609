"""Chooses the measures of an experiment, and rejects those that its results would lack."""

from __future__ import annotations

from app.db import tables
from app.experiments.schemas import ExperimentCreate
from app.http.errors import Invalid
from app.training.measures import measures_of_dataset
from models.measures.covering import COVERING_MEASURES, covering_measure


def measures_of(request: ExperimentCreate) -> list[str]:
    """Return the names of the measures in the report: those of the request, then the error of each covering.

    Args:
        request: a request with its defaults filled in.
    """
    errors = [covering_measure("covering_error", name) for name in request.coverings]
    return list(dict.fromkeys([*request.measures, *errors]))


def fill_in_measures(body: ExperimentCreate, dataset: tables.Dataset) -> list[str]:
    """Return the measures of a request once each, with the coverings in their names.

    Raises:
        Invalid: a measure is unknown, or no result of the experiment would have it.
    """
    of_coverings = {
        measure: [covering_measure(measure, name) for name in body.coverings] for measure in COVERING_MEASURES
    }
    fitting = [*measures_of_dataset(dataset), *(name for names in of_coverings.values() for name in names)]
    names: list[str] = []
    for i, measure in enumerate(body.measures):
        if measure in of_coverings and body.coverings:
            names += of_coverings[measure]
        elif measure in fitting:
            names.append(measure)
        else:
            if measure.partition(".")[0] in COVERING_MEASURES:
                message = (
                    f"{measure} needs a covering of this name in coverings"
                    if "." in measure
                    else (f"{measure} needs a covering; define one in coverings")
                )
            else:
                message = f"the data set has no measure {measure!r}"
            message += f"; the measures are {', '.join(sorted(fitting))}"
            raise Invalid(message, errors=[(f"/measures/{i}", message)])
    return list(dict.fromkeys(names))
