"""H-SVM: hierarchically trained support vector machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np

from models.arrays import AnyArray, Floats, Ints, Matrix, Vector
from models.base import LearnerParameters, Problem, State
from models.baselines.svm import SVM, LabelByLabel, LinearSVMParameters
from models.hierarchy.forest import Forest
from models.hierarchy.from_context import forest_from_context
from models.serialization.state import read_array


class HSVMParameters(LinearSVMParameters):
    """Parameters of ``h_svm``."""

    algorithm: Literal["h_svm"]


class HSVM(SVM):
    """One linear SVM for each node of the label tree, trained on the examples of the node's parent.

    "Train a node j with examples (x, y) that belong to the parent, i.e. y_pa(j) = 1" (Rousu et al., "Two
    simple strategies"). A root is trained on all examples. A node has the constant margin +1 if all its
    training examples are positive, and -1 if all are negative or there are none. The score of a label is the
    smallest margin on the path from its root. So the sign rule decides top-down, and predicted label sets are
    closed under ancestors. Without a label tree, every label is a root, as in the flat SVM. An example is
    left out for a label if the label or its parent is unknown for it.

    Attributes:
        coef_: (r, k) weights of the nodes.
        intercept_: (k,) intercepts of the nodes.
        forest_: the label forest.

    >>> from models.base import Context
    >>> tree = Context(parents=np.array([-1, 0]))
    >>> X, Y = [[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]], [[1, 0], [1, 1], [0, 0], [0, 0]]
    >>> HSVM(C=10).fit(X, Y, context=tree).predict(X).tolist()
    [[1, 0], [1, 1], [0, 0], [0, 0]]
    """

    parameters: ClassVar[type[LearnerParameters]] = HSVMParameters
    algorithm: ClassVar[str] = "h_svm"

    forest_: Forest

    def _training(self, problem: Problem, parameters: LinearSVMParameters) -> LabelByLabel:
        self.forest_ = forest_from_context(problem.context, problem.Y.shape[1], self.summary_)
        columns = problem.Y.tocsc()

        def examples_of_parent(j: int) -> Ints | None:
            parent = self.forest_.parents[j]
            if parent < 0:
                return None
            return columns.indices[columns.indptr[parent] : columns.indptr[parent + 1]].astype(np.int64)

        return LabelByLabel(self, problem, parameters, examples_of_parent)

    def _scores(self, X: Matrix | Vector) -> Floats:
        return self.forest_.path_minimum(super()._scores(X))

    def explain(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """Return the terms w_f·x_f of the smallest margin on the path to the label.

        The score is their sum plus the intercept of that node. Among equal margins, the node nearest the root
        counts.
        """
        margins = super()._scores(x)[0]
        path = self.forest_.path(label)
        return super().explain(x, path[int(np.argmin(margins[path]))])

    def _get_state(self) -> State:
        """Return the weights, the intercepts and the parents of the labels."""
        return {**super()._get_state(), "parents": self.forest_.parents}

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the learner from the arrays of ``get_state``."""
        super()._set_state(state)
        self.forest_ = Forest(read_array(state, "parents", "int64", (self.n_labels_,)))
        return self
