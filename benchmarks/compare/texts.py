"""Comparisons of text features and class weights: one pipeline for each variant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.compare.frame import Comparison, Stored, fitted, parts, signed
from benchmarks.corpora import Json
from benchmarks.recipes import pipeline
from benchmarks.tables import Result, figure, markdown
from models import catalog

PIVOTED = {"weighting": "pivoted", "scaling": "unit"}
BINARY = {"weighting": "binary"}
STOP_WORDS = {"analyzer": {"stop_words": "auto"}}
GAIN = {"selection": {"kind": "information_gain", "per_label": 100}}
ROCCHIO = {"selection": {"kind": "rocchio", "per_label": 100}}


# The default features of each learner, and others

FEATURES: dict[str, Json] = {
    "`pivoted`, `unit`": PIVOTED,
    "`pivoted`, `unit`, stop words": {**PIVOTED, **STOP_WORDS},
    "`tfidf`": {},
    "`tfidf`, stop words": STOP_WORDS,
    "`tf`": {"weighting": "tf"},
    "`binary`": BINARY,
    "`binary`, stop words": {**BINARY, **STOP_WORDS},
    "`binary`, 100 terms per label": {**BINARY, **GAIN},
    "`pivoted`, 100 terms per label": {"weighting": "pivoted", **ROCCHIO},
    "`pivoted`, 100 terms per label, stop words": {"weighting": "pivoted", **ROCCHIO, **STOP_WORDS},
}
LINEAR = ("`pivoted`, `unit`", "`pivoted`, `unit`, stop words", "`tfidf`")
BOOSTING = ("`binary`", "`binary`, stop words", "`binary`, 100 terms per label")

LEARNERS: dict[str, tuple[str, ...]] = {
    "svm": LINEAR,
    "binary_relevance_perceptron": LINEAR,
    "mmp": LINEAR,
    "mlpp": LINEAR,
    "h_rls": LINEAR,
    "naive_bayes": ("`tfidf`", "`tfidf`, stop words", "`tf`"),
    "mp_boost": BOOSTING,
    "adaboost_mh": BOOSTING,
    "adaboost_lc": (
        "`pivoted`, 100 terms per label",
        "`pivoted`, 100 terms per label, stop words",
        "`pivoted`, `unit`",
        "`tfidf`",
    ),
}
"""The features to compare for each learner. ``h_svm`` is ``svm`` if there is no label tree."""

PAIRS = {f"{learner}: {name}": (learner, name) for learner, names in LEARNERS.items() for name in names}

TOO_SLOW = {
    "reuters": {"mlpp", "h_rls", "mp_boost", "adaboost_mh"},
    # It is sorted by label: in one pass in this order, perceptrons learn little else than the last labels.
    "20newsgroups": {*LEARNERS} - {"svm", "naive_bayes"},
}
"""The learners that are not measured on a corpus."""


def _default_features(corpus: str, variant: str) -> Result:
    learner, features = PAIRS[variant]
    create = partial(pipeline, FEATURES[features], {"algorithm": learner})
    of = parts(corpus, "stratified" if corpus == "lists" else "given")
    return fitted(create, of, ["f1_micro", "subset_accuracy"])


def _is_default(corpus: str, learner: str, features: str) -> bool:
    """Whether a training without features would use these."""
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner})
    default = catalog.resolve_features(parameters, None, "email" if corpus == "demo" else "text")
    return default == catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **FEATURES[features]})


def _default_features_tables(stored: Stored) -> Mapping[str, str]:
    rows = []
    for variant, (learner, features) in PAIRS.items():
        cells = [f"`{learner}`" if features == LEARNERS[learner][0] else "", features]
        for corpus in DEFAULT_FEATURES.corpora:
            shown = figure(stored[corpus, variant]["f1_micro"]) if (corpus, variant) in stored else ""
            cells.append(f"**{shown}**" if shown and _is_default(corpus, learner, features) else shown)
        rows.append(cells)
    return {"default_features": markdown(["learner", "features", *DEFAULT_FEATURES.corpora.values()], rows)}


DEFAULT_FEATURES = Comparison(
    {
        "demo": "demo (e-mails)",
        "lists": "mailing lists",
        "reuters": "Reuters",
        "20newsgroups": "20 Newsgroups",
    },
    list(PAIRS),
    _default_features,
    _default_features_tables,
    left_out=lambda corpus, variant: PAIRS[variant][0] in TOO_SLOW.get(corpus, ()),
)


# Options of text features, with svm

RECIPE = "the recipe"
OPTIONS: dict[str, Json] = {
    RECIPE: {},
    "`smooth_idf`": {"smooth_idf": True},
    "`tfidf`": {"weighting": "tfidf"},
    "`min_df` 2": {"min_df": 2},
    "English stop words": {"analyzer": {"stop_words": "english"}},
    "English stop words and stems": {"analyzer": {"stop_words": "english", "stemmer": "english"}},
    "stop words and stems `auto`": {"analyzer": {"stop_words": "auto", "stemmer": "auto"}},
    "`character_ngrams` 3 to 5": {"analyzer": {"character_ngrams": [3, 5]}},
    "`unit: character`, 3 to 5": {"analyzer": {"unit": "character", "ngrams": [3, 5]}},
    "`unit: spectrum`, 4": {"analyzer": {"unit": "spectrum", "ngrams": [4, 4]}},
    "`hashing` to 2^18": {"hashing": {}},
    "bigrams": {"analyzer": {"ngrams": [1, 2]}},
    "bigrams, `min_df` 2": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2},
    "bigrams, `min_df` 2, `smooth_idf`": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2, "smooth_idf": True},
}
SLOW = ("`character_ngrams` 3 to 5", "`unit: character`, 3 to 5", "`unit: spectrum`, 4")


def _text_options(corpus: str, variant: str) -> Result:
    create = partial(pipeline, PIVOTED | OPTIONS[variant], {"algorithm": "svm"}, {"kind": "auto"})
    return fitted(create, parts(corpus), ["f1_micro", "f1_macro_one"])


def _text_options_left_out(corpus: str, option: str) -> bool:
    if corpus == "rcv1":  # names of binary features, so without words
        return "analyzer" in OPTIONS[option]
    return not corpus.startswith("demo") and option in SLOW


def _text_options_tables(stored: Stored) -> Mapping[str, str]:
    rows = []
    for option in OPTIONS:
        cells = [option]
        for corpus in TEXT_OPTIONS.corpora:
            if (corpus, option) not in stored:
                cells.append("")
                continue
            value, recipe = (stored[corpus, each]["f1_micro"] for each in (option, RECIPE))
            cells.append(figure(value) if option == RECIPE else signed(round(value - recipe, 3)))
        rows.append(cells)
    return {"text_options": markdown(["", *TEXT_OPTIONS.corpora.values()], rows)}


TEXT_OPTIONS = Comparison(
    {
        "demo as text": "demo",
        "demo, German": "demo, German",
        "lists": "mailing lists",
        "reuters": "Reuters",
        "rcv1": "RCV1 part",
    },
    list(OPTIONS),
    _text_options,
    _text_options_tables,
    left_out=_text_options_left_out,
)


# Class weights

FEATURES_OF = {"svm": PIVOTED, "naive_bayes": {"weighting": "tf"}}
DECISIONS = ("sign", "tuned_threshold", "auto")
WEIGHTS = ("none", "balanced")


def _class_weights(corpus: str, variant: str) -> Result:
    algorithm, decision, class_weight = variant.split(", ")
    learner = {"algorithm": algorithm, "class_weight": class_weight}
    create = partial(pipeline, FEATURES_OF[algorithm], learner, {"kind": decision})
    return fitted(create, parts(corpus), ["f1_micro", "f1_macro_zero"])


def _class_weights_tables(stored: Stored) -> Mapping[str, str]:
    rows = [
        [
            title,
            f"`{algorithm}`, `{decision}`",
            *(
                figure(stored[corpus, f"{algorithm}, {decision}, {weight}"][measure])
                for measure in ("f1_micro", "f1_macro_zero")
                for weight in WEIGHTS
            ),
        ]
        for corpus, title in CLASS_WEIGHTS.corpora.items()
        for algorithm in FEATURES_OF
        for decision in DECISIONS
    ]
    head = ["corpus", "learner and decision", "micro F1", "with `balanced`", "macro F1", "with `balanced`"]
    return {"class_weights": markdown(head, rows)}


CLASS_WEIGHTS = Comparison(
    {"reuters": "Reuters-21578", "lists": "mailing lists"},
    [f"{a}, {decision}, {weight}" for a in FEATURES_OF for decision in DECISIONS for weight in WEIGHTS],
    _class_weights,
    _class_weights_tables,
)
