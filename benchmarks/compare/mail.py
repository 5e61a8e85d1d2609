"""Comparisons of the fields of mail, and of treatments of quoted text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.compare.frame import Comparison, Stored, demo_records, signed
from benchmarks.corpora import Json, records
from benchmarks.recipes import pipeline
from benchmarks.tables import Result, figure, markdown
from models.data.examples import Examples
from models.mail import MailDocument
from models.mail.addresses import find_domains
from models.mail.quoting import split_quoted_text
from models.text.tokens import words

MEASURES = ("f1_micro", "f1_macro_one", "one_error")
SEEDS = 3
OFF = {"weight": 0}
OWN = {"own_terms": True}

Message = tuple[MailDocument, tuple[str, ...]]


@cache
def messages(corpus: str) -> list[Message]:
    """Return the messages of a corpus with their labels.

    - spamassassin_lists: mail of 16 mailing lists, some of it for several. Only subjects and bodies are left
      of the messages, because the labels come from the other header fields.
    - 20newsgroups: a third of its messages, with the subject and the domain of the author.
    - new_senders: the same, but the test part has no sender domain of the training part, as in mail from new
      customers.
    - off_topic: spamassassin_lists, in which every second quotation comes from a message with other labels,
      as in a reply that asks about something else.
    - demo: the messages of the demo, which are generated.

    No corpus with labels has recipients, list ids or attachments, so these fields are not measured.
    """
    if corpus == "off_topic":
        return _off_topic(messages("spamassassin_lists"))
    if corpus == "demo":
        mails = [(record, record["email"]) for record in demo_records()]
        return [_message(m["subject"], m.get("from", ""), m["text"], record) for record, m in mails]
    if corpus == "spamassassin_lists":
        heads = [(record, record["text"].partition("\n")) for record in records(corpus)]
        return [_message(subject, "", body, record) for record, (subject, _, body) in heads]
    articles = []
    for record in list(records("20newsgroups"))[::3]:
        head, _, body = record["text"].partition("\n\n")
        fields = (field.partition(":") for field in head.split("\n"))
        headers = {name.lower(): value.strip() for name, colon, value in fields if colon}
        articles.append(_message(headers.get("subject", ""), headers.get("from", ""), body, record))
    return articles


def _message(subject: str, sender: str, body: str, record: Json) -> Message:
    new, quoted = split_quoted_text(body)
    domain = next(iter(find_domains(sender)), "")
    mail = MailDocument(subject=subject, sender_domain=domain, new_text=new, quoted_text=quoted)
    return mail, tuple(record["labels"])


def _off_topic(mails: list[Message]) -> list[Message]:
    with_quotation = [message for message in mails if message[0].quoted_text]
    rng = np.random.default_rng(0)
    changed = []
    for number, (mail, labels) in enumerate(mails):
        quoted, of = mail.quoted_text, labels
        while mail.quoted_text and number % 2 == 0 and set(of) & set(labels):
            other, of = with_quotation[int(rng.integers(len(with_quotation)))]
            quoted = other.quoted_text
        changed.append((replace(mail, quoted_text=quoted), labels))
    return changed


def _measured(
    training: Sequence[Message], test: Sequence[Message], features: Json, *learner: Json
) -> list[float]:
    """Return the measures of a pipeline on the test part."""
    both = [
        Examples("email", [mail for mail, _ in part], [labels for _, labels in part])  # type: ignore[arg-type]
        for part in (training, test)
    ]
    measures = pipeline(features, *learner).fit(both[0]).evaluate(both[1]).measures
    return [round(float(measures[name]), 5) for name in MEASURES]


# Fields

DEFAULT = "**default**"
FIELDS: dict[str, Json] = {
    DEFAULT: {},
    "no subject": {"subject": OFF},
    "no new text": {"new_text": OFF},
    "no quoted text": {"quoted_text": OFF},
    "only the subject": {"new_text": OFF, "quoted_text": OFF},
    "subject with terms of its own": {"subject": OWN},
    "subject with weight 2": {"subject": {"weight": 2}},
    "subject with weight 4": {"subject": {"weight": 4}},
    "subject with weight 2 and terms of its own": {"subject": {"weight": 2, **OWN}},
    "quoted text with terms of its own": {"quoted_text": OWN},
    "with the sender domain": {"sender_domain": {"weight": 1}},
}
ONLY_LISTS = ("no new text", "only the subject", "subject with weight 2", "subject with weight 4")


def _fields(corpus: str, variant: str) -> Result:
    """Return the measures with each of three random quarters as the test part. The rule is ``sign``."""
    mails = messages("20newsgroups" if corpus == "new_senders" else corpus)
    values = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        if corpus == "new_senders":
            domains = sorted({mail.sender_domain for mail, _ in mails})
            chosen = {domains[i] for i in rng.permutation(len(domains))[: len(domains) // 4]}
            in_test = [mail.sender_domain in chosen for mail, _ in mails]
        else:
            in_test = [bool(i < len(mails) // 4) for i in rng.permutation(len(mails))]
        training, test = (
            [message for message, at in zip(mails, in_test, strict=True) if at == part]
            for part in (False, True)
        )
        features = {"weighting": "pivoted", "scaling": "unit", "fields": FIELDS[variant]}
        values.append(_measured(training, test, features, {"algorithm": "svm"}, {"kind": "sign"}))
    return {"values": values}


def _fields_left_out(corpus: str, variant: str) -> bool:
    if corpus == "spamassassin_lists":
        return variant == "with the sender domain"
    return variant in ONLY_LISTS


def _fields_tables(stored: Stored) -> Mapping[str, str]:
    rows = []
    for corpus, title in MAIL_FIELDS.corpora.items():
        default = np.array(stored[corpus, DEFAULT]["values"])
        for variant in FIELDS:
            if (corpus, variant) in stored:
                values = np.array(stored[corpus, variant]["values"])
                cells = []
                for mean, changes in zip(values.mean(axis=0), (values - default).T, strict=True):
                    change = ""
                    if changes.any():
                        error = changes.std(ddof=1) / np.sqrt(len(changes))
                        change = f" ({signed(changes.mean())} ± {figure(error)})"
                    cells.append(figure(mean) + change)
                rows.append([title if variant == DEFAULT else "", variant, *cells])
    return {"mail_fields": markdown(["corpus", "fields", "micro F1", "macro F1", "one-error"], rows)}


MAIL_FIELDS = Comparison(
    {
        "spamassassin_lists": "mailing lists",
        "20newsgroups": "20 Newsgroups",
        "new_senders": "new senders",
        "demo": "demo",
    },
    list(FIELDS),
    _fields,
    _fields_tables,
    left_out=_fields_left_out,
)


# Quoted text

ANALYZER = {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"}
RECIPES: dict[str, tuple[Json, Json]] = {
    "mp_boost": (
        {
            "weighting": "binary",
            "analyzer": ANALYZER,
            "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 100},
        },
        {"algorithm": "mp_boost", "rounds": 50},
    ),
    "svm": ({"weighting": "tfidf", "scaling": "unit", "analyzer": ANALYZER}, {"algorithm": "svm"}),
}
SHARED = {"own_terms": False}
TREATMENTS: dict[str, Json] = {
    "counts like new text": {"weight": 1, **SHARED},
    "counts half": {"weight": 0.5, **SHARED},
    "left out": OFF,
    "left out after 5 words of new text": {"weight": 0.5, **SHARED},
    "terms of their own": {"weight": 0.5, **OWN},
}
"""What quoted text counts. With binary weights, any weight means that a quoted term is present."""

COMPARED = {
    "mp_boost": (
        *("counts like new text", "left out", "left out after 5 words of new text"),
        "terms of their own",
    ),
    "svm": ("counts half", "left out", "terms of their own"),
}
DEFAULTS = {"mp_boost": "terms of their own", "svm": "counts half"}
TITLES = {"mp_boost": "`mp_boost`, `binary`", "svm": "`svm`, `tfidf`, `unit`"}

NEVER = 10**9


def _quoted_text(corpus: str, variant: str) -> Result:
    """Return the measures on the messages with new and quoted text of three random quarters."""
    learner, _, treatment = variant.partition(": ")
    features, parameters = RECIPES[learner]
    fields = {"quoted_text": TREATMENTS[treatment]}
    limit = int(treatment.split()[3]) if "after" in treatment else NEVER
    mails = [
        (replace(mail, quoted_text="") if len(words(mail.new_text)) >= limit else mail, labels)
        for mail, labels in messages(corpus)
    ]
    both_texts = [bool(words(mail.new_text)) and bool(mail.quoted_text) for mail, _ in messages(corpus)]
    values = []
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(mails)).tolist()
        first = len(mails) // 4
        test = [mails[i] for i in order[:first] if both_texts[i]]
        training = [mails[i] for i in order[first:]]
        values.append(_measured(training, test, {**features, "fields": fields}, parameters))
    return {"values": values}


def _quoted_text_tables(stored: Stored) -> Mapping[str, str]:
    rows = []
    for learner, treatments in COMPARED.items():
        for treatment in treatments:
            shown = f"**{treatment}**" if treatment == DEFAULTS[learner] else treatment
            results = [stored[corpus, f"{learner}: {treatment}"] for corpus in QUOTED_TEXT.corpora]
            f1 = [figure(float(np.mean(result["values"], axis=0)[0])) for result in results]
            rows.append([TITLES[learner] if treatment == treatments[0] else "", shown, *f1])
    head = ["learner and weights", "quoted text", *QUOTED_TEXT.corpora.values()]
    return {"quoted_text": markdown(head, rows)}


QUOTED_TEXT = Comparison(
    {"spamassassin_lists": "mailing lists", "20newsgroups": "20 Newsgroups", "off_topic": "other topics"},
    [f"{learner}: {treatment}" for learner, treatments in COMPARED.items() for treatment in treatments],
    _quoted_text,
    _quoted_text_tables,
)
