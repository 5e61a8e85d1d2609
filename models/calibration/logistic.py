"""Logistic regression with a Gaussian prior and lower bounds, for many small problems at once."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Ints

_MAX_STEPS = 50
_MAX_HALVINGS = 20
_TOLERANCE = 1e-6


def fit_logistic(
    X: Floats, positives: Floats, totals: Floats, *, prior: Floats, ridge: Floats, lower: Floats
) -> Floats:
    """Fit l logistic regressions of f coefficients by Newton's method.

    Each maximises the likelihood of its points, minus half the sum of ``ridge`` · (coefficient - ``prior``)².
    With a positive ridge the maximum exists and is unique, also if a hyperplane separates the points.

    Args:
        X: (l, f, m) the points of each regression. There are many more points than features, so the values of
            a feature are contiguous.
        positives: (l, m) the number of examples at each point that have the label.
        totals: (l, m) the number of examples at each point; 0 leaves the point out.
        prior: (l, f) or (f,) the coefficients that the ridge pulls towards.
        ridge: (f,) how strongly it pulls, each above 0.
        lower: (f,) lower bounds of the coefficients; -∞ for none.

    Returns:
        (l, f) the coefficients.

    >>> X = np.array([[[-1.0, 1.0], [1.0, 1.0]]])
    >>> fit_logistic(X, np.array([[0.0, 9.0]]), np.array([[9.0, 9.0]]), prior=np.zeros(2),
    ...     ridge=np.full(2, 0.1), lower=np.full(2, 0.0)).round(2).tolist()
    [[3.83, 0.0]]
    """
    n, f, _ = X.shape
    prior = np.broadcast_to(prior, (n, f))
    beta = np.maximum(prior, lower)
    value, expected = _evaluate(X, positives, totals, beta, prior, ridge)
    diagonal = np.arange(f)
    active = np.arange(n)
    for _ in range(_MAX_STEPS):
        x, pos, tot, current, p = (_rows(array, active) for array in (X, positives, totals, beta, expected))
        weights = tot * p
        gradient = np.einsum("lfm,lm->lf", x, weights - pos) + ridge * (current - prior[active])
        weights *= 1 - p
        hessian = (x * weights[:, np.newaxis]) @ x.transpose(0, 2, 1)
        hessian[:, diagonal, diagonal] += ridge
        # A coefficient at its bound stays there while the gradient pushes it further down.
        bound: Bools = (current <= lower) & (gradient > 0)
        gradient[bound] = 0
        hessian[bound] = 0
        hessian.transpose(0, 2, 1)[bound] = 0
        hessian[:, diagonal, diagonal] += bound
        step = np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0]
        decrement = (gradient * step).sum(axis=1)
        going = decrement > _TOLERANCE
        if not going.any():
            break
        active, step, current = active[going], step[going], current[going]
        pending, length = np.arange(len(active)), 1.0
        for _ in range(_MAX_HALVINGS):
            rows = active[pending]
            proposed = np.maximum(current[pending] - length * step[pending], lower)
            x, pos, tot = _rows(X, rows), _rows(positives, rows), _rows(totals, rows)
            loss, p = _evaluate(x, pos, tot, proposed, prior[rows], ridge)
            better = loss < value[rows]
            beta[rows[better]], value[rows[better]] = proposed[better], loss[better]
            expected[rows[better]] = p[better]
            pending, length = pending[~better], length / 2
            if not len(pending):
                break
        active = np.delete(active, pending)  # no shorter step improves these: they are at the optimum
        if not len(active):
            break
    return beta


def _evaluate(
    X: Floats, positives: Floats, totals: Floats, beta: Floats, prior: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """Return the (l,) values to minimise, and the (l, m) probability of the label at each point."""
    logits = np.einsum("lfm,lf->lm", X, beta)
    penalty = (ridge * (beta - prior) ** 2).sum(axis=1) / 2
    # log(1 + e^x) and 1 / (1 + e^-x), both from e^-|x|, which cannot overflow.
    exponential = np.exp(-np.abs(logits))
    softplus = np.maximum(logits, 0) + np.log(1 + exponential)
    likelihood = (totals * softplus - positives * logits).sum(axis=1)
    return penalty + likelihood, np.where(logits < 0, exponential, 1) / (1 + exponential)


def _rows(array: Floats, rows: Ints) -> Floats:
    """Return rows of an array; the array itself, and no copy, if these are all."""
    return array if len(rows) == len(array) else array[rows]
