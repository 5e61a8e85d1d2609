"""The words of forms for the names of the API: parameters, and the values that a person can choose."""

from __future__ import annotations

from collections.abc import Mapping

from app.pages.measures import MEASURES

_PARAMETERS: Mapping[str, str] = {
    "C": "Penalty of mistakes (C)",
    "alpha": "Smoothing (α)",
    "anywhere": "Characters anywhere in a word",
    "at_least": "Smallest improvement",
    "at_most": "Maximum number of departments",
    "attachment_names": "Names of attachments",
    "attachment_types": "Types of attachments",
    "calibrated": "Use calibrated scores",
    "character_ngrams": "Lengths of character sequences",
    "class_weight": "Weights of the two classes",
    "columns": "Columns",
    "count": "Number of features",
    "covering": "Label covering",
    "decimal": "Decimal mark",
    "decision": "Decision rule",
    "drop_numbers": "Leave out numbers",
    "early_stopping": "Early stopping",
    "fbr": "Use labels with a low F1 as fallback (FBR)",
    "false_label": "Cost of a wrong label",
    "feature_names": "Names of features",
    "first_feature": "Number of the first feature",
    "first_label": "Number of the first label",
    "fold_turkic_i": "Treat the Turkish ı and i as equal",
    "gap": "Largest duality gap",
    "gamma": "Width of the kernel (γ)",
    "hashing": "Hash the features",
    "if_better": "Comparison",
    "ignore": "Labels to ignore",
    "include": "List of stop words",
    "initial": "Initial weights",
    "inside": "Characters inside a word",
    "interactions": "Combine subject and text",
    "k": "Number of labels",
    "keep_labels": "Labels of the version",
    "label_columns": "Columns of 0 and 1",
    "label_header": "Header fields with labels",
    "label_mode": "Labels of a document",
    "label_names": "Names of labels",
    "label_prefix": "Prefix of labels",
    "labels_in": "Columns with labels",
    "label_separator": "Separator between labels",
    "list_id": "Mailing list",
    "lowercase": "Ignore upper and lower case",
    "max_bad_records": "Maximum number of bad records",
    "max_df": "Maximum number of documents with a word",
    "max_features": "Maximum number of features",
    "max_length": "Maximum length of a word",
    "merge_labels": "Labels to merge",
    "min_df": "Minimum number of documents with a word",
    "min_length": "Minimum length of a word",
    "missed_label": "Cost of a missed label",
    "n_features": "Number of features",
    "name_encoding": "Encoding of file names",
    "new_text": "New text",
    "ngrams": "Lengths of word sequences",
    "optimize": "What to optimize",
    "own_terms": "Count its words separately",
    "patience": "Steps without improvement",
    "per_label": "Features of each label",
    "promote": "Put the version live",
    "prune": "Leave out weights below",
    "quoted_text": "Quoted text",
    "raw_email": "Column of the whole message",
    "remove_labels": "Labels to remove",
    "rename_labels": "New names of labels",
    "ridge": "Regularization (ridge)",
    "root": "Folder to leave out",
    "scope": "Thresholds",
    "sender_domain": "Domain of the sender",
    "smooth_idf": "Smooth the document frequencies",
    "split": "Held-out examples",
    "split_words": "Words for the parts",
    "stop_words": "Stop words",
    "stump": "Kind of decision stump",
    "sublinear_tf": "Weaken frequent words",
    "test_fraction": "Share to hold out",
    "token_characters": "Characters of words",
    "tree": "Folders are a label tree",
    "unit": "Unit of the text",
    "unsegmented": "Scripts without spaces",
    "validation_fraction": "Share for validation",
}

_CHOICES: Mapping[str, str] = {
    "a list": "A list",
    "a text": "A text",
    "adaboost_lc": "AdaBoost.LC",
    "adaboost_mh": "AdaBoost.MH",
    "at_least_one": "At least one label",
    "binary_relevance_perceptron": "Binary relevance perceptron",
    "calibrated_label": "Calibration label",
    "cost with settings": "Costs of mistakes",
    "cp1252": "Windows-1252",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "cp1253": "Windows-1253",
    "cp1254": "Windows-1254",
    "csv": "CSV",
    "default": "Recommended",
    "document_frequency": "Document frequency",
    "dutch_porter": "Dutch (Porter)",
    "eml_zip": "Folders of messages (zip)",
    "arff": "ARFF",
    "fasttext": "fastText",
    "float32": "Single precision",
    "float64": "Double precision",
    "h_m3": "H-M3",
    "h_rls": "H-RLS",
    "h_svm": "H-SVM",
    "if_better": "Only if better",
    "if_first": "Only if it is the first version",
    "information_gain": "Information gain",
    "jsonl": "JSON Lines",
    "latin-1": "Latin-1",
    "linear with settings": "Linear, with settings",
    "max_abs": "Largest absolute value",
    "max_wins": "One vote each",
    "mbox": "Mailbox (mbox)",
    "mlpp": "MLPP",
    "mmp": "MMP",
    "mp_boost": "MP-Boost",
    "naive_bayes": "Naive Bayes",
    "polynomial with settings": "Polynomial, with settings",
    "rbf": "Radial basis function (RBF)",
    "rbf with settings": "Radial basis function (RBF), with settings",
    "real_abstaining": "Real, abstaining",
    "round_robin": "In turn from each label",
    "single_label": "Exactly one label",
    "smart": "SMART",
    "subset_accuracy": "Messages with every department right",
    "svm": "Support vector machine (SVM)",
    "svmlight": "SVMlight",
    "tf": "Term frequency",
    "tfidf": "TF-IDF",
    "top_k": "A fixed number of labels",
    "tuned_threshold": "Tuned thresholds",
    "two_sets": "Two sets",
    "utf-16": "UTF-16",
    "utf-8": "UTF-8",
    "weighted_negative": "Weighted negative",
    "weighted_positive": "Weighted positive",
    "zero_one": "Zero–one",
}

_IN_CONTEXT: Mapping[tuple[str, str], str] = {
    ("algorithm", ""): "Learner",
    ("decision", ""): "Decision rule",
    ("decision", "auto"): "Automatic",
    ("decision", "sign"): "Score above 0",
    ("decision", "target"): "A target of precision or recall",
    ("delimiter", "\t"): "Tab",
    ("early_stopping", "default"): "No",
    ("early_stopping", "with settings"): "Yes",
    ("email", "default"): "None",
    ("features", "auto"): "Automatic",
    ("hashing", "default"): "No",
    ("hashing", "n_features"): "To a fixed number of features",
    ("keep_labels", "all"): "All labels of the data set",
    ("keep_labels", "trained"): "Labels with a training example",
    ("label_mode", "multilabel"): "Any number",
    ("label_mode", "single_label"): "Exactly one",
    ("merge_labels", "similar"): "Those that differ only in spelling",
    ("options", "default"): "Detected from the file",
    ("promote", "always"): "Always",
    ("promote", "never"): "Never",
    ("scope", "per_label"): "One for each label",
    ("scope", "pooled"): "One for all labels",
    ("split", "assigned"): "Use the file's folds",
    ("split", "folds"): "In turn, by folds",
    ("split", "given"): "Use the file's split",
    ("split", "none"): "None",
    ("split", "random"): "Random examples",
    ("split_words", "default"): "The usual words",
    ("stop_words", "auto"): "Those of the language",
    ("unit", "spectrum"): "Characters across words",
}
"""Words that depend on the parameter whose value is chosen."""


def label_of(name: str) -> str:
    """Return the words for a parameter by its JSON pointer.

    >>> label_of("split/test_fraction"), label_of("learner/rounds"), label_of("split/kind")
    ('Share to hold out', 'Rounds', 'Held-out examples')
    """
    parent, _, part = name.rpartition("/")
    if part == "kind" and parent:
        return label_of(parent)
    return _IN_CONTEXT.get((part, "")) or _PARAMETERS.get(part) or _capitalized(part)


def choice_of(name: str, value: object) -> str:
    """Return the words for a value of a parameter.

    >>> choice_of("split/kind", "given"), choice_of("learner/algorithm", "mp_boost"), choice_of("tree", True)
    ("Use the file's split", 'MP-Boost', 'Yes')
    """
    if isinstance(value, bool):
        return "Yes" if value else "No"
    text = str(value)
    part = name.removesuffix("/kind").rpartition("/")[2]
    return _IN_CONTEXT.get((part, text)) or _words(text) or _capitalized(text)


def words_for(code: str) -> str | None:
    """Return the words for a name of the API in a description; None if it is something else."""
    return _PARAMETERS.get(code) or _words(code)


def _words(value: str) -> str | None:
    return _CHOICES.get(value) or (MEASURES[value].title if value in MEASURES else None)


def _capitalized(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]
