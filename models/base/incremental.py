"""Learners that learn an example at a time and can go on learning: new examples, and new labels with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, read_only
from models.base import Context, Learner, Monitor, State, Step, TrainingSummary
from models.base.learning_curve import MEASURES, RunningMeans
from models.base.validation import as_training_matrices
from models.errors import ParameterError, UnsuitableDataError
from models.serialization.state import read_array, read_integer, require
from models.serialization.strings import unpack_strings

FIRST_CHUNK, CHUNK = 100, 2_000
"""Examples between two calls of the monitor, at first and at most: a fraction of a second, for the slowest of
these learners. In the first pass they grow with half of what was seen, so that its curve, the learning
curve, shows how learning begins."""


class IncrementalLearner(Learner):
    """Base of the perceptrons and of naive Bayes.

    A training makes passes over the examples, a chunk at a time; after every chunk the monitor is called, so
    that a single pass over many examples shows progress, can be cancelled, and resumed there. The unit of its
    steps is therefore ``"examples"``: presented so far, of all that the passes will present.

    Each example is tested before it is learned from; the measures of a step are the means over the current
    pass so far. In the first pass that is the learning curve, which ``learning_curve_`` keeps.

    Labels are known by the names of ``context.labels``. ``partial_fit`` may bring names that are new: they
    are inserted in label order, as labels that no earlier example had. Without names the labels stay what
    they are.

    Attributes:
        labels_: the k label names, None where none were given.
        label_counts_: (k,) examples with each label among the ``n_examples_`` seen.
        n_examples_: different examples seen: those of ``fit`` (once, however many passes) and of every
            ``partial_fit``.
        n_presented_: examples presented, repeats included.
        learning_curve_: (points, 5): examples seen so far, then the means of the four
            ``learning_curve.MEASURES`` over those tested until there.
    """

    labels_: list[str] | None
    label_counts_: Ints
    n_examples_: int
    n_presented_: int
    learning_curve_: Floats

    random_state: int
    _first_pass_means: RunningMeans
    _pass_means: RunningMeans
    _arrays_shared: bool

    def partial_fit(self, X: Any, Y: Any, *, context: Context | None = None) -> Self:
        """Go on learning: one pass over new examples, in their order (or shuffled, as in ``fit``).

        Args:
            X: (n, r) features, the same r as before.
            Y: (n, k') relevant labels. With ``context.labels`` its columns are known by name: names that
                were unknown become labels, and known labels that are not among them are irrelevant to these
                examples. Without, k' must be the k of before.
            context: label names, in label order.

        Raises:
            ParameterError: parameters that cannot be used, label names out of order.
            UnsuitableDataError: data that this algorithm cannot learn from.
            ValueError: another number of features or labels than before.
        """
        parameters = self.validated_parameters()
        matrix, labels = as_training_matrices(X, Y)
        names = _names(context, labels.shape[1])
        self._check_features(matrix)
        if hasattr(self, "label_counts_"):
            if matrix.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            labels = self._add_labels(labels, names, parameters)
        else:
            self._reset(matrix.shape[1], names, labels.shape[1], parameters)
        self._copy_shared_arrays()
        order = self._order(matrix.shape[0], parameters)
        for _ in self._chunks(matrix, labels, order, 0, self._first_pass_means, parameters):
            pass
        self.summary_ = TrainingSummary()
        self._summarize()
        return self

    def _fit(
        self,
        X: Matrix,
        Y: Labels,
        parameters: Any,
        context: Context,
        monitor: Monitor,
        resume: State | None,
    ) -> None:
        g = X.shape[0]
        self._check_features(X)
        self._reset(X.shape[1], _names(context, Y.shape[1]), Y.shape[1], parameters)
        if resume is not None:
            self.set_state(resume)
            self._copy_shared_arrays()
        passes = self._passes(parameters)
        for epoch in range(self.n_presented_ // g, passes):
            done = self.n_presented_ - epoch * g
            # The order of a pass is drawn from the examples presented before it, which a resumed one repeats.
            order = self._order(g, parameters, presented=epoch * g)
            if epoch and not done:
                self._pass_means = RunningMeans()
            tally = self._first_pass_means if epoch == 0 else self._pass_means
            for _ in self._chunks(X, Y, order, done, tally, parameters):
                snapshot = partial(_copied, self)
                monitor(
                    Step(
                        self.n_presented_,
                        g * passes,
                        "examples",
                        tally.measures,
                        snapshot,
                        self._scores_so_far(),
                    )
                )
        self._summarize()

    def _scores_so_far(self) -> Callable[[Matrix], Floats] | None:
        """How what has been learned so far scores examples; None where that takes the whole training."""
        return self._scores

    def _chunks(
        self, X: Matrix, Y: Labels, order: Ints | None, done: int, tally: RunningMeans, parameters: Any
    ) -> Iterator[None]:
        """Make a pass from its example ``done`` on, stopping after every chunk."""
        while done < X.shape[0]:
            chunk = slice(done, min(X.shape[0], done + self._chunk_length(tally is self._first_pass_means)))
            self._process_chunk(X, Y, order, chunk, tally, parameters)
            done = chunk.stop
            yield

    def _order(self, g: int, parameters: Any, *, presented: int | None = None) -> Ints | None:
        """The order of a pass; None for the data set's own."""
        if not getattr(parameters, "shuffle", False):
            return None
        key = self.n_presented_ if presented is None else presented
        return np.random.default_rng([self.random_state, key]).permutation(g)

    def _process_chunk(
        self, X: Matrix, Y: Labels, order: Ints | None, chunk: slice, tally: RunningMeans, parameters: Any
    ) -> None:
        """Test and learn one chunk of a pass."""
        rows = chunk if order is None else order[chunk]
        part, relevant = X[rows], Y[rows]
        first_time = tally is self._first_pass_means
        tested, scores = self._learn_chunk(part, relevant, parameters, first_time)
        tally.add(scores, relevant if tested is None else relevant[tested])
        self.n_presented_ += part.shape[0]
        if first_time:
            self.n_examples_ += part.shape[0]
            self.label_counts_ = self.label_counts_ + np.bincount(relevant.indices, minlength=self.n_labels_)
            if tally.measures:
                point = [float(self.n_examples_), *tally.measures.values()]
                self.learning_curve_ = np.vstack([self.learning_curve_, point])

    def _reset(self, r: int, names: list[str] | None, k: int, parameters: Any) -> None:
        """Become a learner that has seen no example."""
        initial = self._initial_arrays(r, k, parameters)
        self.n_features_in_, self.n_labels_ = r, k
        self.labels_, self.label_counts_ = names, np.zeros(k, dtype=np.int64)
        self.n_examples_ = self.n_presented_ = 0
        self.learning_curve_ = np.empty((0, 1 + len(MEASURES)))
        self._first_pass_means, self._pass_means = RunningMeans(), RunningMeans()
        self.summary_ = TrainingSummary()
        self._set_fitted_arrays(initial)
        self._arrays_shared = False

    def _add_labels(self, Y: Labels, names: list[str] | None, parameters: Any) -> Labels:
        """Take in the labels of new examples; gives Y in the columns that the learner has afterwards."""
        if names is None:
            if Y.shape[1] != self.n_labels_:
                raise ValueError(
                    f"Y has {Y.shape[1]} labels, but this learner has {self.n_labels_}; "
                    "name them in context.labels to add labels"
                )
            return Y
        if self.labels_ is None:
            if len(names) != self.n_labels_:
                raise UnsuitableDataError(
                    f"the examples name {len(names)} labels, but this learner was trained with "
                    f"{self.n_labels_} labels without names; give their names from the first training on"
                )
            self.labels_ = names
        union = sorted({*self.labels_, *names})
        place = {name: j for j, name in enumerate(union)}
        if len(union) > self.n_labels_:
            old = np.array([place[name] for name in self.labels_], dtype=np.int64)
            grown = self._grown_arrays(old, len(union), parameters)
            counts = np.zeros(len(union), dtype=np.int64)
            counts[old] = self.label_counts_
            self.labels_, self.label_counts_, self.n_labels_ = union, counts, len(union)
            self._set_fitted_arrays(grown)
            self._arrays_shared = False
        columns = np.array([place[name] for name in names], dtype=np.int64)
        return csr_array(
            (read_only(Y.data), columns[Y.indices], read_only(Y.indptr)), shape=(Y.shape[0], len(union))
        )

    def _copy_shared_arrays(self) -> None:
        """Copy learned arrays that someone else holds too (a saved model, a snapshot), before they change."""
        if self._arrays_shared:
            self._set_fitted_arrays({name: array.copy() for name, array in self._fitted_arrays().items()})
            self._arrays_shared = False

    def get_state(self) -> State:
        """The learned arrays, and what further training needs: names, counts and the learning curve.

        The arrays are the learner's own, not copies; further training leaves them as they are.
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
        if self.labels_ is not None:
            encoded = [name.encode() for name in self.labels_]
            state["label_bytes"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            state["label_ends"] = np.cumsum([len(name) for name in encoded], dtype=np.int64)
        return state

    def set_state(self, state: Mapping[str, AnyArray]) -> Self:
        """Become the learner whose state this was."""
        width = 1 + len(MEASURES)
        self.label_counts_ = read_array(state, "label_counts", "int64", (None,))
        self.learning_curve_ = read_array(state, "curve", "float64", (None, width))
        self.n_labels_ = len(self.label_counts_)
        self.n_examples_ = read_integer(state, "n_examples", minimum=1)
        self.n_presented_ = read_integer(state, "n_presented", minimum=1)
        within = (self.label_counts_ >= 0) & (self.label_counts_ <= self.n_examples_)
        require(bool(within.all()), "a label has more examples than there are, or fewer than none")
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
        require(all(a < b for a, b in pairwise(names)), "the label names are not in order")
        return names

    def _in_every_example(self) -> Bools:
        """(k,) labels that every example seen has."""
        return np.asarray(self.label_counts_ == self.n_examples_)

    def _warn_constant_labels(self) -> None:
        """Say which labels have the constant score +1."""
        constant = np.flatnonzero(self._in_every_example()).tolist()
        if constant:
            names = self.labels_ or [str(j) for j in range(self.n_labels_)]
            listed = ", ".join(names[j] for j in constant)
            self.summary_.warnings.append(
                f"every example has these labels, their score is always +1: {listed}"
            )

    def _passes(self, parameters: Any, /) -> int:
        """How often ``fit`` presents the examples."""
        return int(parameters.epochs)

    def _chunk_length(self, first_time: bool, /) -> int:
        """Examples between two calls of the monitor, in a pass over new examples or over known ones."""
        return min(max(self.n_examples_ // 2, FIRST_CHUNK), CHUNK) if first_time else CHUNK

    def _check_features(self, X: Matrix, /) -> None:
        """Refuse data that the algorithm cannot learn from."""

    @abstractmethod
    def _read_fitted_arrays(self, state: Mapping[str, AnyArray]) -> State:
        """The arrays of ``_fitted_arrays`` from a saved state, which counts ``n_labels_`` labels."""

    @abstractmethod
    def _fitted_arrays(self) -> State:
        """What has been learned, as named arrays."""

    @abstractmethod
    def _set_fitted_arrays(self, arrays: State) -> None:
        """Take over the arrays of ``_fitted_arrays``."""

    @abstractmethod
    def _initial_arrays(self, r: int, k: int, parameters: Any, /) -> State:
        """The arrays of ``_fitted_arrays`` before the first example; refuses what does not fit in memory."""

    @abstractmethod
    def _grown_arrays(self, old: Ints, k: int, parameters: Any, /) -> State:
        """The arrays of ``_fitted_arrays`` for k labels; the known ones are at the indices ``old``."""

    @abstractmethod
    def _learn_chunk(
        self, X: Matrix, Y: Labels, parameters: Any, first_time: bool, /
    ) -> tuple[Ints | None, Floats]:
        """Learn from a chunk, which is new to the learner (``first_time``) or was presented before.

        Returns:
            the rows that were tested (None: all), and the scores that their examples had before they were
            learned from.
        """

    @abstractmethod
    def _summarize(self) -> None:
        """Note what the training has to say of itself, once it is over."""


def _copied(learner: IncrementalLearner) -> State:
    lent = learner._arrays_shared  # noqa: SLF001 - copies are no loan
    state = {name: array.copy() for name, array in learner.get_state().items()}
    learner._arrays_shared = lent  # noqa: SLF001
    return state


def _names(context: Context | None, k: int) -> list[str] | None:
    """The label names of a problem with k labels.

    Raises:
        ParameterError: not k names, or not in label order.
    """
    if context is None or context.labels is None:
        return None
    names = list(context.labels)
    if len(names) != k:
        raise ParameterError(f"{len(names)} label names were given for {k} labels", "/labels")
    if any(a >= b for a, b in pairwise(names)):
        raise ParameterError("label names must be in label order (by code point), each once", "/labels")
    return names
