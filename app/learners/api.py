"""HTTP route of the learners."""

from __future__ import annotations

from app.api.base_route import ReadScope, resource
from app.api.schemas import ResponseModel
from models import catalog
from models.catalog import LearnerDescription

router = resource("learners")


class LearnerList(ResponseModel):
    """A list of all learners."""

    items: list[LearnerDescription]
    """The learners, in order of `algorithm`."""


@router.get("/learners", dependencies=[ReadScope], response_description="All learners.")
def list() -> LearnerList:  # noqa: A001 - the verb of the operation's id
    """List all learners.

    The response has the JSON Schema of the parameters of each learner, their defaults, and the source of the
    algorithm.
    """
    return LearnerList(items=catalog.describe())
