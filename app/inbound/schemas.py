"""Response schemas of the operations that e-mail providers call."""

from __future__ import annotations

from app.api.schemas import ResponseModel
from app.routing.schemas import Disposition


class Receipt(ResponseModel):
    """The outcome of a delivery. Without a decision, the delivery brought no message."""

    decision_id: str | None = None
    """Id of the decision about the message."""

    disposition: Disposition | None = None
    """Whether the message was routed, needs a review, or went to the fallback."""

    confirm_url: str | None = None
    """The URL that confirms a subscription to a topic. Open it once; the service does not."""
