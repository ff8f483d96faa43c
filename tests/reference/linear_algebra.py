"""Reference data for cholesky (NumPy) and triangular_solve (SciPy), in binary64."""
import itertools

import numpy as np
import scipy.linalg

from reference_data import *


def triangle(lower):
    return np.tril if lower else np.triu


def over_batch(f, *operands):
    """Applies f to each matrix of a batch."""
    batch = operands[0].shape[:-2]
    results = [f(*(x[i] for x in operands)) for i in np.ndindex(batch)]
    return np.array(results).reshape(*batch, *results[0].shape)


def real_bound(name, a):
    """Returns the backward error of n steps times the condition number."""
    n = a.shape[-1]
    worst = max(np.linalg.cond(a[i]) for i in np.ndindex(a.shape[:-2]))
    unit = eps("f64" if name == "f64" else "f32")
    return within("n roundings, amplified by the condition number", 1, 4 * n * unit * float(worst))


def cholesky_cases(w):
    def put(a, lower, bound=EXACT, note="", result=None):
        """Writes a case. The op does not read the other triangle of a, so it has arbitrary values."""
        name = name_of(a)
        if result is None:
            result = over_batch(np.linalg.cholesky, wide(a)) if a.size else wide(a)
            result = result if lower else np.swapaxes(result, -1, -2)
        junk = np.where(triangle(lower)(np.ones(a.shape)) == 1, wide(a), nan)
        w.case("cholesky", [cast(name, junk)], cast(name, result), [lower], bound, note)

    def exact(name, shape, seed):
        """Returns l l^T for small integers with a positive diagonal, so that every step is exact."""
        rng = np.random.default_rng(seed)
        l = np.tril(rng.integers(-2, 3, shape), -1) + np.eye(shape[-1]) * 2 ** rng.integers(
            0, 2, shape)
        return cast(name, l @ np.swapaxes(l, -1, -2))

    for lower in (0, 1):
        for name in FLOATS:
            put(exact(name, (3, 3), 1), lower)
            put(exact(name, (2, 4, 4), 2), lower, note="a batch")
            x = wide(random(name, (2, 5, 5), 3))
            a = cast(name, x @ np.swapaxes(x, -1, -2) + 4 * np.eye(5))
            a = cast(name, np.tril(wide(a)) + np.swapaxes(np.tril(wide(a), -1), -1, -2))
            put(a, lower, real_bound(name, wide(a)), "any values")
        put(np.array([[9.0]], np.float32), lower)
        put(np.zeros((0, 0), np.float32), lower, note="empty")
        put(np.zeros((0, 3, 3), np.float64), lower, note="no matrix")
        put(exact("f64", (2, 1, 2, 2), 4), lower, note="batches of batches")
        bad = np.array([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 3.0], [3.0, 1.0]]], np.float32)
        good = np.linalg.cholesky(bad[0].astype(np.float64))
        good = good if lower else good.T
        put(bad, lower, note="not positive definite: the triangle is NaN",
            result=np.stack([good, np.where(triangle(lower)(np.ones((2, 2))) == 1, nan, 0)]))
        put(np.array([[-1.0]], np.float64), lower, result=np.array([[nan]]))


def solve_cases(w):
    def put(a, b, flags, bound=EXACT, note=""):
        """Writes a case. The op reads neither the other triangle of a nor a unit diagonal."""
        left, lower, unit, transpose = flags
        name = name_of(a)

        def solve(a, b):
            if b.size == 0:
                return b
            # x op(a) = b is op(a)^T x^T = b^T
            x = scipy.linalg.solve_triangular(a, b if left else b.T, lower=bool(lower),
                                              trans=int(transpose) if left else int(not transpose),
                                              unit_diagonal=bool(unit))
            return x if left else x.T

        x = over_batch(solve, wide(a), wide(b)) if b.size else wide(b)
        read = triangle(lower)(np.ones(a.shape), (-1 if lower else 1) if unit else 0)
        w.case("triangular_solve", [cast(name, np.where(read == 1, wide(a), nan)), b],
               cast(name, x), flags, bound, note)

    def exact(name, shape, seed):
        """Returns a matrix whose diagonal has powers of two, so that every step is exact."""
        rng = np.random.default_rng(seed)
        a = rng.integers(-2, 3, shape).astype(np.float64)
        n = shape[-1]
        a[..., range(n), range(n)] = 2.0 ** rng.integers(-1, 2, shape[:-1])
        return cast(name, a)

    for flags in itertools.product((0, 1), repeat=4):
        left = flags[0]
        put(exact("f32", (3, 3), 1), small("f32", (3, 4) if left else (4, 3), 2), flags,
            UNSIGNED_ZERO)
        put(exact("f64", (2, 4, 4), 3), small("f64", (2, 4, 3) if left else (2, 3, 4), 4), flags,
            UNSIGNED_ZERO, "a batch")
    for name in FLOATS:
        a = wide(random(name, (6, 6), 5, -0.5, 0.5)) + 2 * np.eye(6)
        a = cast(name, a)
        b = random(name, (6, 5), 6)
        for flags in ((1, 1, 0, 0), (1, 0, 0, 1)):
            size = 8 * float(np.abs(wide(b)).max())
            unit = eps("f64" if name == "f64" else "f32")
            put(a, b, flags, within("n roundings, of a well-conditioned triangle", 1,
                                    6 * unit * size), "any values")
        put(exact(name, (2, 2), 7), small(name, (2, 1), 8), (1, 1, 0, 0), UNSIGNED_ZERO)
    put(np.array([[4.0]], np.float32), np.array([[2.0, 6.0]], np.float32), (1, 0, 0, 0))
    put(np.zeros((0, 0), np.float32), np.zeros((0, 3), np.float32), (1, 1, 0, 0), note="empty")
    put(exact("f32", (3, 3), 9), np.zeros((3, 0), np.float32), (1, 1, 0, 0), note="nothing to solve")
    put(np.zeros((0, 2, 2), np.float64), np.zeros((0, 2, 3), np.float64), (1, 0, 1, 0),
        note="no matrix")


def main():
    w = Writer("linear_algebra")
    cholesky_cases(w)
    solve_cases(w)
    w.write()
