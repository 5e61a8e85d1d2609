"""Which messages a version can read."""

from __future__ import annotations

from typing import Any

import pytest

from app.routing.scoring import is_readable, to_documents
from models import catalog
from models.data.examples import Examples
from models.mail import Email, MailDocument, read_email
from models.pipeline import Pipeline

TO_BILLING = Email(to="billing@example.org")
WITH_TEXT = Email(text="The invoice is wrong.")
EMPTY = Email(text=" \n")
ONLY_RECIPIENTS = {
    **{name: {"weight": 0} for name in ("subject", "new_text", "quoted_text", "attachment_names")},
    "recipients": {"weight": 1},
}


@pytest.mark.parametrize(
    ("fields", "readable"),
    [({}, [False, True, False]), (ONLY_RECIPIENTS, [True, False, False])],
    ids=["default fields", "recipients"],
)
def test_a_message_is_readable_if_it_has_a_field_that_the_version_reads(
    fields: dict[str, Any], readable: list[bool]
) -> None:
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", "weighting": "tf", "fields": fields}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "sign"}),
    )
    messages = [
        Email(to=f"{name}@example.org", text=f"{name} please") for name in ("billing", "sales", "support")
    ]
    pipeline.fit(Examples("email", messages, [("billing",), ("sales",), ("support",)]))
    mails: list[MailDocument] = [read_email(email) for email in (TO_BILLING, WITH_TEXT, EMPTY)]
    assert [is_readable(pipeline, document) for document in to_documents(pipeline, mails)] == readable
