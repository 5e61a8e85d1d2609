"""Writes predictions as JSON from arrays, without an object for each label.

The name of each label is encoded once for a version, Pydantic's encoder writes all scores at once, and the
rest joins bytes. For 115 labels this takes 14 µs. A list of dictionaries takes 33 µs with the same encoder,
20 µs with ``orjson``, and 119 µs with Python's ``json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from pydantic_core import to_json

from app.serving.explanations import explanation_content
from models.pipeline import Prediction, Ranking


class ResponseEncoder:
    r"""Writes rankings and label sets of one version.

    Args:
        labels: the labels of the version, in label order. Methods take labels as indices into this list.

    >>> encoder = ResponseEncoder(['"a"', "é"])
    >>> print(encoder.ranked_labels([1, 0], [0.5, -1e-7]).decode())
    [{"label":"é","score":0.5,"rank":1},{"label":"\"a\"","score":-1e-7,"rank":2}]
    >>> print(encoder.label_set([0, 1]).decode())
    ["\"a\"","é"]
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._numbers = {label: number for number, label in enumerate(labels)}
        self.names = [json.dumps(label, ensure_ascii=False).encode() for label in labels]
        """The labels as JSON strings."""
        self._starts = [b'{"label":%b,"score":' % name for name in self.names]
        self._ends = [b',"rank":%d},' % rank for rank in range(1, len(labels) + 1)]

    def label_set(self, labels: Sequence[int]) -> bytes:
        """Return a list of labels as a JSON array of strings."""
        names = self.names
        return b"[%b]" % b",".join(map(names.__getitem__, labels))

    def ranked_labels(
        self, labels: Sequence[int], scores: Sequence[float], probabilities: Sequence[float] | None = None
    ) -> bytes:
        """Return a ranking as a JSON array of objects, see ``app.serving.schemas.RankedLabel``.

        Args:
            labels: the labels, best first.
            scores: their finite scores.
            probabilities: their probabilities; None leaves out the field.
        """
        return self._join(labels, scores, probabilities, self._ends[: len(labels)])

    def predictions(self, ranking: Ranking) -> bytes:
        """Return the predictions for several documents as the JSON array of ``PredictResponse``."""
        return b"[%b]" % b",".join(self.each_prediction(ranking))

    def each_prediction(self, ranking: Ranking) -> list[bytes]:
        """Return the prediction for each document as a JSON object.

        Its fields are ``labels``, ``ranking`` and, if the version is calibrated, ``set_probability``.
        """
        n, ends = len(ranking.label_sets), self._ends[: ranking.order.shape[1]]
        none: list[None] = [None] * n
        probabilities = none if ranking.probabilities is None else ranking.probabilities.tolist()
        of_sets = none if ranking.set_probabilities is None else ranking.set_probabilities.tolist()
        return [
            b'{"labels":%b,"ranking":%b%b}'
            % (
                self.label_set(label_set),
                self._join(labels, scores, of_labels, ends),
                b"" if of_set is None else b',"set_probability":%b' % to_json(of_set),
            )
            for label_set, labels, scores, of_labels, of_set in zip(
                ranking.label_sets,
                ranking.order.tolist(),
                ranking.scores.tolist(),
                probabilities,
                of_sets,
                strict=True,
            )
        ]

    def explained_predictions(
        self,
        predictions: Sequence[Prediction],
        *,
        explain: bool,
        texts: Iterable[Mapping[str, str]] = repeat({}),
    ) -> bytes:
        """Return predictions that have more than a ranking, as the JSON array of ``PredictResponse``.

        Args:
            predictions: the predictions.
            explain: whether explanations were requested; without them, the fields are left out.
            texts: for each prediction, the texts that its explanations refer to; empty if the client has
                them.
        """
        return b"[%b]" % b",".join(
            [
                self._explained(prediction, of_one, explain=explain)
                for prediction, of_one in zip(predictions, texts, strict=False)
            ]
        )

    def _explained(self, prediction: Prediction, texts: Mapping[str, str], *, explain: bool) -> bytes:
        number = self._numbers
        fields = [
            b'"labels":' + self.label_set([number[label] for label in prediction.labels]),
            b'"ranking":'
            + self.ranked_labels(
                [number[label] for label, _ in prediction.ranking],
                [score for _, score in prediction.ranking],
                prediction.probabilities,
            ),
        ]
        if prediction.set_probability is not None:
            fields.append(b'"set_probability":%b' % to_json(prediction.set_probability))
        if explain:
            fields.append(b'"explanation":' + explanations(prediction))
        if texts:
            fields.append(b'"texts":' + to_json(texts))
        if prediction.dot_products is not None:
            fields.append(b'"dot_products":%d' % prediction.dot_products)
        return b"{%b}" % b",".join(fields)

    def _join(
        self,
        labels: Sequence[int],
        scores: Sequence[float],
        probabilities: Sequence[float] | None,
        ends: Sequence[bytes],
    ) -> bytes:
        width = 3 if probabilities is None else 5
        parts = [b',"probability":'] * (width * len(labels))
        parts[0::width] = map(self._starts.__getitem__, labels)
        parts[1::width] = numbers(scores)
        if probabilities is not None:
            parts[3::width] = numbers(probabilities)
        parts[width - 1 :: width] = ends
        return b"[%b]" % b"".join(parts)[:-1]  # without the last comma


def explanations(prediction: Prediction) -> bytes:
    """Return the explanations of a prediction as a JSON array of ``LabelExplanation``."""
    return to_json(explanation_content(prediction.explanation))


def numbers(values: Sequence[float]) -> list[bytes]:
    """Return each number in the shortest form that reads back as the same number.

    >>> numbers([0.1, -3.0])
    [b'0.1', b'-3.0']
    >>> numbers([])
    []
    """
    return to_json(values)[1:-1].split(b",") if values else []
