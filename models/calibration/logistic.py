"""Logistic regression with a Gaussian prior and lower bounds, for many small problems at once."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats

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
        X: (l, m, f) the points of each regression.
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
    n, _, f = X.shape
    prior = np.broadcast_to(prior, (n, f))
    beta = np.maximum(prior, lower)
    value = _loss(X, positives, totals, beta, prior, ridge)
    diagonal = np.arange(f)
    active = np.arange(n)
    for _ in range(_MAX_STEPS):
        x, pos, tot, current = X[active], positives[active], totals[active], beta[active]
        expected = _sigmoid(np.einsum("lmf,lf->lm", x, current))
        gradient = np.einsum("lmf,lm->lf", x, tot * expected - pos) + ridge * (current - prior[active])
        weights = tot * expected * (1 - expected)
        hessian = np.einsum("lmf,lm,lmh->lfh", x, weights, x, optimize=True)
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
            loss = _loss(X[rows], positives[rows], totals[rows], proposed, prior[rows], ridge)
            better = loss < value[rows]
            beta[rows[better]], value[rows[better]] = proposed[better], loss[better]
            pending, length = pending[~better], length / 2
            if not len(pending):
                break
        active = np.delete(active, pending)  # no shorter step improves these: they are at the optimum
        if not len(active):
            break
    return beta


def _loss(X: Floats, positives: Floats, totals: Floats, beta: Floats, prior: Floats, ridge: Floats) -> Floats:
    logits = np.einsum("lmf,lf->lm", X, beta)
    penalty: Floats = (ridge * (beta - prior) ** 2).sum(axis=1) / 2
    likelihood: Floats = (totals * np.logaddexp(0, logits) - positives * logits).sum(axis=1)
    return penalty + likelihood


def _sigmoid(logits: Floats) -> Floats:
    half: Floats = 0.5 + 0.5 * np.tanh(logits / 2)
    return half
