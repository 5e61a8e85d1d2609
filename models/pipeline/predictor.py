"""What a fitted pipeline predicts: scores, label sets, rankings, probabilities, explanations and measures."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from models import catalog
from models.arrays import Bools, Floats, Labels, Matrix, Vector
from models.base import Learner, TrainingSummary
from models.base.training import abbreviated
from models.base.validation import UnfittedError
from models.calibration import Calibration
from models.data.examples import Documents, ExampleSource, FeatureRows, Kind
from models.data.record import json_pointer
from models.decisions import DecisionRule, LabelSetRule
from models.decisions.curves import HeldOutCurves
from models.decisions.held_out import HeldOutSample
from models.decisions.report import DecisionReport
from models.errors import ParameterError
from models.features import NumericFeatures
from models.features.documents import as_documents, match_columns, read_documents
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix, unknown_matrix
from models.labels.ranking import ranking
from models.mail import MailDocument
from models.measures.evaluation import Evaluation, evaluate
from models.pipeline.explanation import Explanation, explain_labels
from models.pipeline.prediction import (
    Prediction,
    ScoredDocuments,
    full_scores,
    scores_of_one,
)
from models.pipeline.progress import Phase
from models.pipeline.ranking import LabelBudget, Ranking, rows_of
from models.pipeline.reference import Reference
from models.pipeline.training_set import Features

_BLOCK_SCORES = 2**18
"""Scores that a prediction computes at once, which limits the memory."""


class Predictor:
    """Everything that a fitted pipeline can tell about documents; see ``Pipeline`` for its attributes."""

    features_: Features
    learner_: Learner
    n_features_in_: int
    decision_: DecisionRule
    kind_: Kind
    labels_: list[str]
    tree_: LabelTree | None
    rule_: LabelSetRule
    calibration_: Calibration | None
    curves_: HeldOutCurves | None
    held_out_: HeldOutSample | None
    decision_report_: DecisionReport | None
    reference_: Reference
    mail_version_: int | None
    summary_: TrainingSummary
    timings_: dict[Phase, float]

    def feature_matrix(self, documents: Documents | Sequence[MailDocument]) -> Matrix:
        """Return the features of documents, (n, r).

        Raises:
            ParameterError: the documents are of another kind.
        """
        return self.features_.vectors(self._readable(documents))

    def scores(self, documents: Documents | Sequence[MailDocument] | ExampleSource) -> Floats:
        """Return unrounded scores of every label, (n, k) float64.

        Args:
            documents: n documents of the kind of the training documents, or a source of examples, which is
                read in batches.

        Raises:
            ParameterError: the documents are of another kind.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        return self.scored(documents).scores

    def scored(self, documents: Documents | Sequence[MailDocument] | ExampleSource) -> ScoredDocuments:
        """Return the scores of documents, from which ``decide`` and ``evaluate_scores`` get label sets.

        Args:
            documents: as for ``scores``.

        Raises:
            ParameterError: the documents are of another kind.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        labels, source = self._check_fitted(), cast("Any", documents)
        if hasattr(source, "label_sets"):
            parts = [self.scored(batch.documents) for batch in source.batches()]
            return ScoredDocuments.concatenate(parts, len(labels))
        readable = self._readable(source)
        X = self.features_.vectors(readable)
        return ScoredDocuments(full_scores(self.learner_, X), self.features_.empty_documents(readable, X))

    def rule_with(
        self,
        thresholds: Mapping[str, float],
        *,
        at_most: int | None = None,
        ignore_unknown: bool = False,
    ) -> LabelSetRule:
        """Return the fitted rule with other thresholds for some labels.

        Args:
            thresholds: the score above which a label is predicted, by label. Others keep their thresholds.
            at_most: maximum number of predicted labels, if it is below that of the fitted rule.
            ignore_unknown: whether to ignore labels that the pipeline does not have.

        Raises:
            ParameterError: the pipeline has no label of a name.
        """
        labels, rule = self._check_fitted(), self.rule_
        if at_most is not None and (rule.at_most is None or at_most < rule.at_most):
            rule = replace(rule, at_most=at_most)
        if not thresholds:
            return rule
        values = rule.thresholds.copy()
        for label, threshold in thresholds.items():
            number = bisect_left(labels, label)
            if labels[number : number + 1] == [label]:
                values[number] = threshold
            elif not ignore_unknown:
                raise ParameterError(
                    f"the model has no label {label!r}; remove it from thresholds",
                    json_pointer("thresholds", label),
                )
        return replace(rule, thresholds=values)

    def decide(self, scored: ScoredDocuments) -> Labels:
        """Return the label sets of n scored documents, (n, k) sparse 0/1."""
        self._check_fitted()
        return scored.label_sets(self.rule_)

    def rank(
        self,
        documents: Documents | Sequence[MailDocument],
        *,
        top: int | None = None,
        max_labels: int | None = None,
        rule: LabelSetRule | None = None,
    ) -> Ranking:
        """Predict label sets and rankings as arrays, with probabilities if the pipeline is calibrated.

        Args:
            documents: n documents of the kind of the training documents.
            top: length of the rankings; None includes every label.
            max_labels: maximum number of labels in all rankings and label sets; None for no limit.
            rule: how scores become label sets; None selects the fitted rule.

        Raises:
            ParameterError: the documents are of another kind, or the rankings and label sets exceed
                ``max_labels``.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        readable = self._readable(documents)
        X = self._features_of(readable)
        empty = self.features_.empty_documents(readable, X)
        return self._rank(X, empty, top, rule or self.rule_, LabelBudget(max_labels))

    def predictions(
        self,
        documents: Documents | Sequence[MailDocument],
        *,
        top: int | None = None,
        explain: bool = False,
        terms: int = 10,
        max_labels: int | None = None,
        rule: LabelSetRule | None = None,
    ) -> list[Prediction]:
        """Predict label sets and rankings.

        Args:
            documents: n documents of the kind of the training documents.
            top: length of the rankings; None includes every label.
            explain: whether to explain the predicted labels.
            terms: maximum number of terms in an explanation.
            max_labels: maximum number of labels in all rankings, label sets and explanations, and of terms in
                the explanations; None for no limit.
            rule: how scores become label sets; None selects the fitted rule.

        Raises:
            ParameterError: the documents are of another kind, the learner does not support ``explain``, or
                the predictions exceed ``max_labels``.
            UnsuitableDataError: a score is not finite because the values of a document are too large.
        """
        weight = 1 + explain * (1 + terms)  # of a predicted label, with its explanation
        budget = LabelBudget(max_labels, weight, "or omit explain" if explain else None)
        readable, rule = self._readable(documents), rule or self.rule_
        X = self._features_of(readable)
        empty = self.features_.empty_documents(readable, X)
        ranked = self._rank(X, empty, top, rule, budget)
        matrix = self._as_matrix(X) if explain else None
        return [
            Prediction(
                labels=[self.labels_[j] for j in predicted],
                ranking=[(self.labels_[j], score) for j, score in zip(order, scores, strict=True)],
                explanation=(
                    [] if matrix is None else self._explanations(readable, matrix, i, predicted, terms)
                ),
                probabilities=None if ranked.probabilities is None else ranked.probabilities[i].tolist(),
                set_probability=(
                    None if ranked.set_probabilities is None else float(ranked.set_probabilities[i])
                ),
            )
            for i, (order, scores, predicted) in enumerate(
                zip(ranked.order.tolist(), ranked.scores.tolist(), ranked.label_sets, strict=True)
            )
        ]

    def explain(
        self, documents: Documents | Sequence[MailDocument], label: str, *, terms: int = 10
    ) -> list[Explanation]:
        """Explain the score of a label for each document, whether or not the label is predicted.

        Args:
            documents: n documents of the kind of the training documents.
            label: one of ``labels_``.
            terms: maximum number of terms in an explanation.

        Raises:
            ParameterError: the label is unknown, or the learner cannot explain its scores.
        """
        if label not in self._check_fitted():
            raise ParameterError(f"the model has no label {label!r}", "/label")
        readable = self._readable(documents)
        j, X = self.labels_.index(label), self.features_.vectors(readable)
        return [self._explanations(readable, X, i, [j], terms)[0] for i in range(X.shape[0])]

    def evaluate(self, source: ExampleSource, *, covering: Any = None) -> Evaluation:
        """Compute all measures of the predictions for labelled examples.

        Macro-averaged measures average over ``labels_``. If the examples have other labels, the evaluation
        has a warning that lists them. Unknown labels of examples are not measured.

        Args:
            source: labelled examples.
            covering: the covering of ``covering_error`` and ``covering_loss``, or its JSON form; None selects
                the covering of the learner if it has one.
        """
        return self.evaluate_scores(
            source.label_sets(), self.scored(source), unknown_sets=source.unknown_sets(), covering=covering
        )

    def evaluate_scores(
        self,
        label_sets: Sequence[tuple[str, ...]],
        scored: ScoredDocuments,
        *,
        unknown_sets: Sequence[tuple[str, ...]] = (),
        covering: Any = None,
    ) -> Evaluation:
        """Compute all measures from the scores of labelled examples; of probabilities only if calibrated.

        Args:
            label_sets: the true label set of each of n examples.
            scored: their scores.
            unknown_sets: the unknown labels of each of the examples; may be empty.
            covering: as for ``evaluate``.
        """
        if covering is None:
            covering = self.learner_.validated_parameters().training_covering()
        labels = self._check_fitted()
        Y = indicator_matrix(label_sets, labels, self.tree_)
        predicted, scores = self.decide(scored), scored.scores
        probabilities = set_probabilities = None
        if self.calibration_ is not None:
            probabilities, set_probabilities = self.calibration_.probabilities(
                scores, predicted.toarray() != 0, scored.empty
            )
        evaluation = evaluate(
            Y,
            predicted,
            scores,
            labels,
            tree=self.tree_,
            covering=covering,
            unknown=unknown_matrix(unknown_sets, Y, labels, self.tree_),
            probabilities=probabilities,
            set_probabilities=set_probabilities,
        )
        untrained = sorted(set(collect_labels(label_sets, self.tree_)) - set(labels))
        if untrained:
            evaluation.warnings.append(
                f"labels without a training example are not measured: {abbreviated(untrained)}"
            )
        return evaluation

    @property
    def thresholds_(self) -> Floats:
        """(k,) the score above which each label is predicted."""
        return self.rule_.thresholds

    @property
    def closed_under_ancestors_(self) -> bool:
        """Whether every predicted label set is guaranteed to include the ancestors of its labels."""
        self._check_fitted()
        if self.tree_ is None:
            return False
        own = catalog.predicts_closed_sets(self.learner_) and self.decision_.kind == "sign"
        return own or self.rule_.parents is not None

    def _check_fitted(self) -> list[str]:
        """Return the labels.

        Raises:
            NotFittedError: the pipeline is not fitted.
        """
        if not hasattr(self, "rule_"):
            raise UnfittedError("the pipeline is not fitted; call fit first")
        return self.labels_

    def _features_of(self, readable: Any) -> Matrix | Vector:
        """Return the features of documents, as a vector if there is one document and this is possible."""
        features = self.features_
        if len(readable) == 1:
            vector = (
                features.vector(readable)
                if isinstance(features, NumericFeatures)
                else features.vector(readable[0])
            )
            if vector is not None:
                return vector
        return features.vectors(readable)

    def _as_matrix(self, X: Matrix | Vector) -> Matrix:
        return X.to_matrix(self.learner_.n_features_in_) if isinstance(X, Vector) else X

    def _readable(self, documents: Documents | Sequence[MailDocument]) -> Any:
        """Return documents in the form that features are computed from.

        Raises:
            NotFittedError: the pipeline is not fitted.
            ParameterError: the documents are of another kind.
        """
        self._check_fitted()
        given, documents = documents, as_documents(documents)
        if isinstance(documents, FeatureRows):
            documents = match_columns(self, given, documents, getattr(self.features_, "names_", ()))
        if isinstance(documents, FeatureRows) != (self.kind_ == "features"):
            raise ParameterError(f"the model was trained on {self.kind_}; pass documents of that kind")
        return read_documents(documents)

    def _rank(
        self, X: Matrix | Vector, empty: Bools, top: int | None, rule: LabelSetRule, budget: LabelBudget
    ) -> Ranking:
        """Return the ranking of each row of features, or of one example."""
        if isinstance(X, Vector):
            self._check_rankings(1, top, budget)
            scored = ScoredDocuments(scores_of_one(self.learner_, X), empty)
            return self._ranking(scored, top, rule, budget, X.unknown_terms)
        n_ranked = self._check_rankings(X.shape[0], top, budget)
        parts = [
            self._ranking(ScoredDocuments(full_scores(self.learner_, block), empty[rows]), top, rule, budget)
            for rows, block in self._blocks(X)
        ]
        return Ranking.concatenate(parts, n_ranked)

    def _ranking(
        self,
        scored: ScoredDocuments,
        top: int | None,
        rule: LabelSetRule,
        budget: LabelBudget,
        unknown_terms: float | None = None,
    ) -> Ranking:
        """Return the rankings, label sets and probabilities of n scored documents."""
        scores, empty = scored.scores, scored.empty
        order = ranking(scores, top)
        predicted = scored.predicted(rule)
        label_sets = rows_of(predicted)
        budget.spend_on_label_sets(sum(map(len, label_sets)))
        # Indexing a single row is much faster than ``take_along_axis``.
        rows: Any = 0 if len(scores) == 1 else np.arange(len(scores))[:, np.newaxis]
        ranked = scores[rows, order]
        if self.calibration_ is None:
            return Ranking(ranked, order, label_sets, empty, unknown_terms=unknown_terms)
        of_labels, of_sets = self.calibration_.probabilities(scores, predicted, empty)
        return Ranking(ranked, order, label_sets, empty, of_labels[rows, order], of_sets, unknown_terms)

    def _check_rankings(self, n: int, top: int | None, budget: LabelBudget) -> int:
        """Count the labels of n rankings, and return the length of a ranking."""
        k = len(self.labels_)
        length = k if top is None else min(top, k)
        budget.spend_on_rankings(n, length)
        return length

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Matrix]]:
        """Split features into blocks of rows, which limits the memory of their scores."""
        n, size = X.shape[0], max(1, _BLOCK_SCORES // max(1, len(self.labels_)))
        for first in range(0, n, size):
            rows = slice(first, first + size)
            yield rows, X if n <= size else X[rows]

    def _explanations(
        self, readable: Any, X: Matrix, i: int, labels: list[int], n_terms: int
    ) -> list[Explanation]:
        if not labels:
            return []
        x = X if X.shape[0] == 1 else X[[i]]
        document = None if isinstance(readable, FeatureRows) else readable[i]
        named = [(j, self.labels_[j]) for j in labels]
        return explain_labels(self.learner_, self.features_, document, x, named, n_terms)
