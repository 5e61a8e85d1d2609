"""The learners over HTTP."""

from __future__ import annotations

from app.http.base_route import ReadScope, resource
from app.http.schemas import ResponseModel
from models import catalog
from models.catalog import LearnerDescription

router = resource("learners")


class LearnerList(ResponseModel):
    """Every learner there is."""

    items: list[LearnerDescription]
    """By `algorithm`."""


@router.get("/learners", dependencies=[ReadScope])
def list() -> LearnerList:  # noqa: A001 - the verb of the operation's id
    """List every learner with the JSON Schema of its parameters, their defaults and its source."""
    return LearnerList(items=catalog.describe())
