"""The base class of incremental learners, which learn one example at a time.

An incremental learner can continue to learn from new examples, which may have new labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from typing_extensions import override

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, read_only
from models.base import Context, Learner, Problem, State, Training, TrainingSummary
from models.base.column_names import check_column_names, set_column_names
from models.base.learning_curve import MEASURES, RunningMeans
from models.base.training import abbreviated
from models.base.validation import as_training_matrices, check_magnitude, indicator_of_classes
from models.base.weights import as_weights
from models.errors import ParameterError, UnsuitableDataError
from models.serialization.state import read_array, read_integer, require
from models.serialization.strings import unpack_strings

FIRST_CHUNK, CHUNK = 100, 2_000
"""Number of examples between two calls of the monitor, at first and at most.

A chunk takes a fraction of a second, even for the slowest learner. In the first pass, the chunk size is half
of the number of examples so far, so that the learning curve has many points at its beginning.
"""


TEST_BLOCKS = 8
"""Smallest number of chunks of ``test_then_train``. Some learners test a whole chunk before they learn it."""


class IncrementalLearner(Learner):
    """Base class of the perceptrons and of naive Bayes.

    A training makes passes over the examples in chunks, and calls the monitor after every chunk. A long pass
    therefore reports its progress, and can be cancelled and resumed between two chunks. The unit of a step is
    ``"examples"``: the number of examples processed so far, of all examples of all passes.

    The learner tests each example before it learns from it. The measures of a step are the means over the
    current pass so far. Those of the first pass are the learning curve, which is stored in
    ``learning_curve_``.

    ``context.labels`` gives the names of the labels. ``partial_fit`` accepts examples with new label names,
    and inserts the new labels in label order; all earlier examples count as negative examples of these
    labels. Without names, the number of labels cannot change.

    If the learner accepts unknown labels, it leaves an example out for the labels that are unknown for it.
    Examples with unknown labels are not part of the learning curve, because a ranking measure needs all
    labels of an example.

    Attributes:
        labels_: the k label names; None if there are none.
        label_counts_: (k,) number of examples of each label among the ``n_examples_`` examples.
        unknown_counts_: (k,) number of the ``n_examples_`` examples for which each label is unknown.
        n_examples_: number of distinct examples: those of ``fit``, regardless of the number of passes, and of
            every ``partial_fit``.
        n_presented_: number of examples processed, counting an example once per pass.
        learning_curve_: (points, 5) for each point the number of examples so far, and the means of the four
            ``learning_curve.MEASURES`` over the tested ones among them.
    """

    labels_: list[str] | None
    label_counts_: Ints
    unknown_counts_: Ints
    n_examples_: int
    n_presented_: int
    learning_curve_: Floats

    random_state: int
    _first_pass_means: RunningMeans
    _pass_means: RunningMeans
    _arrays_shared: bool
    _tests_into: Floats | None = None
    """(n, k) where the scores of all n examples of ``test_then_train`` are written; None for other calls."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, context: Context | None = None) -> Self:
        """Continue to learn: make one pass over new examples, in their order or shuffled as in ``fit``.

        Args:
            X: (n, r) features, with the same r as before.
            y: (n, k') relevant labels. If ``context.labels`` names the columns, unknown names become new
                labels, and known labels without a column are irrelevant for all of these examples. Without
                names, k' must equal the current number of labels. Alternatively (n,) one class per example,
                as for scikit-learn's classifiers.
            classes: all classes of these and of later examples, in the first call with one class per example;
                may be omitted afterwards, and after ``fit``.
            context: label names, in label order, and unknown labels.

        Raises:
            ParameterError: a parameter is invalid, or the label names are not in label order.
            UnsuitableDataError: this algorithm cannot learn from this data.
            ValueError: the number of features or labels differs from earlier calls, or a class is not among
                the classes of the first call.
        """
        self._continue(X, y, classes, None, context)
        return self

    def test_then_train(
        self, X: Any, Y: Any, sample_weight: Any = None, *, context: Context | None = None
    ) -> Floats:
        """Continue to learn as ``partial_fit`` does, and score each example before learning it.

        Such scores are as good as those of held-out examples (progressive validation: Blum, Kalai and
        Langford 1999, "Beating the hold-out"). A perceptron scores an example after it has learned all
        examples before it. Naive Bayes scores a chunk after it has learned all chunks before it; there are
        at least ``TEST_BLOCKS`` of them if there are so many examples.

        Args:
            X: (n, r) features.
            Y: (n, k) relevant labels, of the labels of the learner.
            sample_weight: (n,) how much each example counts, if the learner accepts weights; positive.
            context: as for ``partial_fit``.

        Returns:
            (n, k) the scores.

        Raises:
            ParameterError: as for ``partial_fit``.
            UnsuitableDataError: as for ``partial_fit``.
        """
        scores = np.empty((X.shape[0], self.n_labels_))
        self._tests_into = scores
        try:
            self._continue(X, Y, None, as_weights(sample_weight, X.shape[0]), context)
        finally:
            self._tests_into = None
        return scores

    def _continue(
        self, X: Any, y: Any, classes: Any, weights: Floats | None, context: Context | None
    ) -> None:
        parameters = self.validated_parameters()
        single_label, known_classes, Y = self._read_labels(y, classes)
        matrix, labels = as_training_matrices(X, Y)
        unknown = self._check_unknown(context or Context(), labels, parameters).unknown
        names = _names(context, labels.shape[1])
        check_magnitude(matrix, context.features if context is not None else None)
        self._check_features(matrix)
        if hasattr(self, "label_counts_"):
            if matrix.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            check_column_names(self, X)
            columns = self._add_labels(labels.shape[1], names, parameters)
            if columns is not None:
                labels = _with_columns(labels, columns, self.n_labels_)
                unknown = None if unknown is None else _with_columns(unknown, columns, self.n_labels_)
        else:
            set_column_names(self, X)
            self._reset(matrix.shape[1], names, labels.shape[1], parameters)
        self.single_label_ = single_label
        self.classes_ = np.arange(self.n_labels_) if known_classes is None else known_classes
        self._copy_shared_arrays()
        order = self._order(matrix.shape[0], parameters)
        for _ in self._chunks(matrix, labels, unknown, weights, order, 0, self._first_pass_means, parameters):
            pass
        self.summary_ = TrainingSummary()
        self._summarize()

    def _read_labels(self, Y: Any, classes: Any) -> tuple[bool, AnyArray | None, Any]:
        """Return whether there is one class per example, the classes, and the labels as a matrix."""
        fitted = hasattr(self, "label_counts_")
        Y = self._as_array(Y)
        if Y.ndim != 1:
            if classes is not None:
                raise ValueError(
                    "classes is for one class per example; for label sets, name the labels in context.labels"
                )
            if fitted and self.single_label_:
                raise ValueError("the learner was fitted on one class per example; pass classes, (n,)")
            return False, None, Y
        if fitted and not self.single_label_:
            raise ValueError("the learner was fitted on label sets; pass an (n, k) matrix of 0 and 1")
        if fitted:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
                raise ValueError(f"classes differs from those of the earlier calls, {known.tolist()}")
        elif classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        else:
            known = np.unique(np.asarray(classes))
        return True, known, indicator_of_classes(Y, known)

    def copy(self) -> Self:
        """Return a copy that learns without a change to this learner.

        The copy shares the fitted arrays until it learns. It computes again what only predictions need.
        """
        copied = type(self)(**self.get_params(deep=False))
        IncrementalLearner._set_state(copied, self._get_state())
        copied.single_label_, copied.classes_ = self.single_label_, self.classes_
        return copied

    def _training(self, problem: Problem, parameters: Any) -> Training:
        X, k = problem.X, problem.Y.shape[1]
        self._check_features(X)
        self._reset(X.shape[1], _names(problem.context, k), k, parameters)
        return Passes(self, problem, parameters)

    def _scores_so_far(self) -> Callable[[Matrix], Floats] | None:
        """Return a function that scores examples with the current model; None if that is not possible."""
        return self._scores

    def _chunks(
        self,
        X: Matrix,
        Y: Labels,
        unknown: Labels | None,
        weights: Floats | None,
        order: Ints | None,
        done: int,
        means: RunningMeans,
        parameters: Any,
    ) -> Iterator[None]:
        """Process the rest of a pass, starting at its example ``done``, and yield after every chunk."""
        tests = self._tests_into
        while done < X.shape[0]:
            length = self._chunk_length(means is self._first_pass_means)
            if tests is not None:
                length = min(length, -(-X.shape[0] // TEST_BLOCKS))
            chunk = slice(done, min(X.shape[0], done + length))
            rows = chunk if order is None else order[chunk]
            part = unknown[rows] if unknown is not None else None
            part_weights = weights[rows] if weights is not None else None
            scores = self._process_chunk(X[rows], Y[rows], part, part_weights, means, parameters)
            if tests is not None:
                tests[rows] = scores
            done = chunk.stop
            yield

    def _means_of_pass(self, epoch: int, done: int) -> RunningMeans:
        """Return the means of a pass of which some examples are done; a new pass begins with new ones."""
        if epoch and not done:
            self._pass_means = RunningMeans()
        return self._pass_means if epoch else self._first_pass_means

    def _order(self, g: int, parameters: Any, *, presented: int | None = None) -> Ints | None:
        """Return the order of the examples in a pass; None for the order of the data set."""
        if not getattr(parameters, "shuffle", False):
            return None
        key = self.n_presented_ if presented is None else presented
        return np.random.default_rng([self.random_state, key]).permutation(g)

    def _process_chunk(
        self,
        X: Matrix,
        Y: Labels,
        unknown: Labels | None,
        weights: Floats | None,
        means: RunningMeans,
        parameters: Any,
    ) -> Floats:
        """Test one chunk of a pass, learn from it, and return the scores of the tested examples."""
        first_time = means is self._first_pass_means
        tested, all_scores = self._learn_chunk(X, Y, unknown, weights, parameters, first_time)
        scores = all_scores
        if unknown is not None:
            tested = np.arange(X.shape[0]) if tested is None else tested
            complete = np.diff(unknown.indptr)[tested] == 0
            tested, scores = tested[complete], scores[complete]
        means.add(scores, Y if tested is None else Y[tested])
        self.n_presented_ += X.shape[0]
        if first_time:
            self.n_examples_ += X.shape[0]
            self.label_counts_ = self.label_counts_ + np.bincount(Y.indices, minlength=self.n_labels_)
            if unknown is not None:
                self.unknown_counts_ = self.unknown_counts_ + np.bincount(
                    unknown.indices, minlength=self.n_labels_
                )
            if means.measures:
                point = [float(self.n_examples_), *means.measures.values()]
                self.learning_curve_ = np.vstack([self.learning_curve_, point])
        return all_scores

    def _reset(self, r: int, names: list[str] | None, k: int, parameters: Any) -> None:
        """Reset to the state before the first example."""
        presented, self.n_presented_ = getattr(self, "n_presented_", 0), 0  # it seeds random weights
        try:
            initial = self._initial_arrays(r, k, parameters)
        except UnsuitableDataError:
            self.n_presented_ = presented  # the earlier model remains as it was
            raise
        self.n_features_in_, self.n_labels_ = r, k
        self.labels_, self.label_counts_ = names, np.zeros(k, dtype=np.int64)
        self.unknown_counts_ = np.zeros(k, dtype=np.int64)
        self.n_examples_ = self.n_presented_ = 0
        self.learning_curve_ = np.empty((0, 1 + len(MEASURES)))
        self._first_pass_means, self._pass_means = RunningMeans(), RunningMeans()
        self.summary_ = TrainingSummary()
        self._set_fitted_arrays(initial)
        self._arrays_shared = False

    def _add_labels(self, k: int, names: list[str] | None, parameters: Any) -> Ints | None:
        """Add the new labels of some examples with k labels.

        Returns:
            (k,) the index of each of their labels among the labels of the learner; None if they are the same.
        """
        if names is None:
            if k != self.n_labels_:
                raise ValueError(
                    f"Y has {k} labels, but this learner has {self.n_labels_}; "
                    "to add labels, name all labels in context.labels"
                )
            return None
        if self.labels_ is None:
            if len(names) != self.n_labels_:
                raise UnsuitableDataError(
                    f"the examples have {len(names)} named labels, but this learner was trained with "
                    f"{self.n_labels_} labels without names; name the labels in every training"
                )
            self.labels_ = names
        union = sorted({*self.labels_, *names})
        place = {name: j for j, name in enumerate(union)}
        if len(union) > self.n_labels_:
            old = np.array([place[name] for name in self.labels_], dtype=np.int64)
            grown = self._grown_arrays(old, len(union), parameters)
            counts = np.zeros((2, len(union)), dtype=np.int64)
            counts[:, old] = self.label_counts_, self.unknown_counts_
            self.labels_, self.n_labels_ = union, len(union)
            self.label_counts_, self.unknown_counts_ = counts
            self._set_fitted_arrays(grown)
            self._arrays_shared = False
        return np.array([place[name] for name in names], dtype=np.int64)

    def _copy_shared_arrays(self) -> None:
        """Copy the fitted arrays before they change if others refer to them (a saved model or a snapshot)."""
        if self._arrays_shared:
            self._set_fitted_arrays({name: array.copy() for name, array in self._fitted_arrays().items()})
            self._arrays_shared = False

    def _get_state(self) -> State:
        """Return the fitted arrays, and what further training needs: names, counts and the learning curve.

        The arrays are not copies, but further training does not change them.
        """
        self._arrays_shared = True
        state = {
            **self._fitted_arrays(),
            "label_counts": self.label_counts_,
            "n_examples": np.array(self.n_examples_),
            "n_presented": np.array(self.n_presented_),
            "curve": self.learning_curve_,
            "curve_sums": np.vstack([self._first_pass_means.sums, self._pass_means.sums]),
        }
        if self.unknown_counts_.any():
            state["unknown_counts"] = self.unknown_counts_
        if self.labels_ is not None:
            encoded = [name.encode() for name in self.labels_]
            state["label_bytes"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            state["label_ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        return state

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Restore the result of ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        width = 1 + len(MEASURES)
        self.label_counts_ = read_array(state, "label_counts", "int64", (None,))
        self.learning_curve_ = read_array(state, "curve", "float64", (None, width))
        self.n_labels_ = len(self.label_counts_)
        self.n_examples_ = read_integer(state, "n_examples", minimum=1)
        self.n_presented_ = read_integer(state, "n_presented", minimum=1)
        self.unknown_counts_ = (
            read_array(state, "unknown_counts", "int64", (self.n_labels_,))
            if "unknown_counts" in state
            else np.zeros(self.n_labels_, dtype=np.int64)
        )
        require(bool((self.unknown_counts_ >= 0).all()), "a number of unknown labels is negative")
        known = self.n_examples_ - self.unknown_counts_
        within = (self.label_counts_ >= 0) & (self.label_counts_ <= known)
        require(bool(within.all()), "the number of examples of a label is negative or too large")
        self._first_pass_means, self._pass_means = (
            RunningMeans(sums.copy()) for sums in read_array(state, "curve_sums", "float64", (2, width))
        )
        self.labels_ = self._read_names(state) if "label_ends" in state else None
        if not hasattr(self, "summary_"):
            self.summary_ = TrainingSummary()
        self._set_fitted_arrays(self._read_fitted_arrays(state))
        self._arrays_shared = True
        return self

    def _read_names(self, state: Mapping[str, AnyArray]) -> list[str]:
        ends = read_array(state, "label_ends", "int64", (self.n_labels_,))
        names = unpack_strings(
            read_array(state, "label_bytes", "uint8", (None,)), np.concatenate([[0], ends])
        )
        require(all(a < b for a, b in pairwise(names)), "the label names are not in label order")
        return names

    def _in_every_example(self) -> Bools:
        """Return (k,) true for labels that all examples so far have for which they are known."""
        known = self._known_counts()
        return np.asarray((self.label_counts_ == known) & (known > 0))

    def _known_counts(self) -> Ints:
        """Return (k,) the number of examples so far for which each label is known."""
        return np.asarray(self.n_examples_ - self.unknown_counts_)

    def _warn_constant_labels(self) -> None:
        """Add a warning about labels whose score is always +1."""
        constant = np.flatnonzero(self._in_every_example()).tolist()
        if constant:
            names = self.labels_ or [str(j) for j in range(self.n_labels_)]
            listed = abbreviated([names[j] for j in constant])
            self.summary_.warnings.append(
                f"every example has these labels, their score is always +1: {listed}"
            )

    def _passes(self, parameters: Any, /) -> int:
        """Return the number of passes of ``fit``."""
        return int(parameters.epochs)

    def _chunk_length(self, first_time: bool, /) -> int:
        """Return the number of examples of the next chunk, in the first pass or in a later one."""
        return min(max(self.n_examples_ // 2, FIRST_CHUNK), CHUNK) if first_time else CHUNK

    def _check_features(self, X: Matrix, /) -> None:
        """Check that the algorithm can learn from these features.

        Raises:
            UnsuitableDataError: it cannot.
        """

    @abstractmethod
    def _read_fitted_arrays(self, state: Mapping[str, AnyArray]) -> State:
        """Read and check the arrays of ``_fitted_arrays`` from a saved state with ``n_labels_`` labels."""

    @abstractmethod
    def _fitted_arrays(self) -> State:
        """Return the fitted arrays by name."""

    @abstractmethod
    def _set_fitted_arrays(self, arrays: State) -> None:
        """Set the fitted arrays to the ones that ``_fitted_arrays`` returned."""

    @abstractmethod
    def _initial_arrays(self, r: int, k: int, parameters: Any, /) -> State:
        """Return the fitted arrays before the first example.

        Raises:
            UnsuitableDataError: they do not fit in memory.
        """

    @abstractmethod
    def _grown_arrays(self, old: Ints, k: int, parameters: Any, /) -> State:
        """Return the fitted arrays extended to k labels. The existing labels get the indices ``old``."""

    @abstractmethod
    def _learn_chunk(
        self,
        X: Matrix,
        Y: Labels,
        unknown: Labels | None,
        weights: Floats | None,
        parameters: Any,
        first_time: bool,
        /,
    ) -> tuple[Ints | None, Floats]:
        """Test a chunk of examples and learn from it.

        Args:
            X: (n, r) features.
            Y: (n, k) relevant labels.
            unknown: (n, k) unknown labels; None if there are none, or if the learner does not accept them.
            weights: (n,) weights of the examples; None if all are 1, or if the learner does not accept them.
            parameters: the validated parameters.
            first_time: whether this is the first pass over these examples.

        Returns:
            the rows that were tested (None: all), and the scores of these examples before the learner learned
            from them.
        """

    def _prepare_scores(self) -> None:
        """Compute what predictions need besides the fitted arrays."""

    @abstractmethod
    def _summarize(self) -> None:
        """Add warnings and facts to ``summary_`` at the end of a training."""


class Passes(Training):
    """The passes of a training over its examples, chunk by chunk. The learner itself is its state."""

    unit: ClassVar[str] = "examples"

    def __init__(self, learner: IncrementalLearner, problem: Problem, parameters: Any) -> None:
        super().__init__(problem.X.shape[0] * learner._passes(parameters))  # noqa: SLF001 - a part of the learner
        self._learner = learner
        self._examples = problem.X, problem.Y, problem.context.unknown, problem.weights
        self._parameters = parameters
        self._chunks = self._remaining_chunks()

    @override
    def advance(self) -> Mapping[str, float] | None:
        means = next(self._chunks, None)
        self.completed = self._learner.n_presented_
        return None if means is None else means.measures

    def _remaining_chunks(self) -> Iterator[RunningMeans]:
        learner, g = self._learner, self._examples[0].shape[0]
        for epoch in range(learner.n_presented_ // g, self.total // g):
            done = learner.n_presented_ - epoch * g
            # The number of examples before the pass seeds its order, so that a resumed pass has the same
            # order.
            order = learner._order(g, self._parameters, presented=epoch * g)  # noqa: SLF001
            means = learner._means_of_pass(epoch, done)  # noqa: SLF001
            for _ in learner._chunks(*self._examples, order, done, means, self._parameters):  # noqa: SLF001
                yield means

    @override
    def arrays(self) -> State:
        learner = self._learner
        shared = learner._arrays_shared  # noqa: SLF001 - copies are not shared
        state = {name: array.copy() for name, array in learner.get_state().items()}
        learner._arrays_shared = shared  # noqa: SLF001
        return state

    @override
    def restore(self, arrays: State) -> None:
        self._learner.set_state(arrays)
        self._learner._copy_shared_arrays()  # noqa: SLF001

    @override
    def scores(self) -> Callable[[Matrix], Floats] | None:
        return self._learner._scores_so_far()  # noqa: SLF001

    @override
    def finish(self) -> None:
        self._learner._summarize()  # noqa: SLF001
        self._learner._prepare_scores()  # noqa: SLF001


def _with_columns(labels: Labels, columns: Ints, k: int) -> Labels:
    """Return a 0/1 matrix with k columns in which each column has the index ``columns`` gives it."""
    return csr_array(
        (read_only(labels.data), columns[labels.indices], read_only(labels.indptr)),
        shape=(labels.shape[0], k),
    )


def _names(context: Context | None, k: int) -> list[str] | None:
    """Return the label names of a problem with k labels.

    Raises:
        ParameterError: the number of names is not k, or they are not in label order.
    """
    if context is None or context.labels is None:
        return None
    names = list(context.labels)
    if len(names) != k:
        raise ParameterError(
            f"there are {len(names)} label names for {k} labels; pass one name per label", "/labels"
        )
    if any(a >= b for a, b in pairwise(names)):
        raise ParameterError("label names must be unique and in label order (by code point)", "/labels")
    return names
