"""Reference data for fold: NumPy's reductions, and loops. Attributes encode the function (op/fold.hpp)."""
import functools

import numpy as np

from reference_data import *

# op, type (-1: that of the first input), operands, attributes; first the inputs, then each step
ADD, MULTIPLY, MAXIMUM, FLOOR, CEIL, SIGN, SINE, ERF = 4, 6, 8, 26, 27, 28, 31, 35


def step(op, *operands):
    return [op, -1, len(operands), *operands, 0]


def put(w, xs, dims, steps, results, ys, identities=None, commutes=True, note="",
        **bound):
    identities = [0] * len(xs) if identities is None else identities
    w.case("fold", xs, ys,
           [int(commutes), len(dims), *dims, len(identities), *identities, *results, *sum(steps, [])], note=note, **bound)


def composed(f, g):
    """Composes x -> a x + b with x -> c x + d."""
    return f[0] * g[0], g[0] * f[1] + g[1]


def main():
    w = Writer("fold")
    for name in ("f32", "f64", "i32", "i64", "u8", "bf16"):
        x = small(name, (3, 5), 1)
        put(w, [x], [1], [step(MAXIMUM, 0, 1)], [2], [x.max(1)], note="the greatest")
    for dims in ([0], [1], [0, 2], [0, 1, 2]):
        x = small("i32", (2, 3, 4), 2)
        y = x.sum(tuple(dims), dtype=np.int32)
        put(w, [x], dims, [step(ADD, 0, 1)], [2], [y], note="a sum")
    x = small("f32", (4, 3), 3)
    put(w, [x], [0], [], [0], [x[0]], commutes=False, note="the first")
    put(w, [x], [0], [], [1], [x[-1]], commutes=False, note="the last")
    put(w, [x], [], [step(ADD, 0, 1)], [2], [x], note="no dimension")
    put(w, [x[:1]], [0], [step(ADD, 0, 1)], [2], [x[0]], note="one element")
    put(w, [np.zeros((2, 0), np.int32)], [1], [step(ADD, 0, 1)], [2], [np.full(2, 7, np.int32)],
        identities=[7], note="an empty dimension: the identity")
    for shape, dim in (((5,), 0), ((2, 4), 1), ((4, 2), 0)):
        a, b = small("i32", shape, 4), small("i32", shape, 5)
        lines = [(np.take(a, i, dim), np.take(b, i, dim)) for i in range(shape[dim])]
        put(w, [a, b], [dim], [step(MULTIPLY, 2, 0), step(MULTIPLY, 2, 1), step(ADD, 5, 3)], [4, 6],
            list(functools.reduce(composed, lines)), identities=[1, 0], commutes=False,
            note="maps, one after the other")
    for count in (7, 100, 1033):
        a, b = 2 * small("i32", (count,), 6) + 1, small("i32", (count,), 7)
        with np.errstate(over="ignore"):
            y = functools.reduce(composed, zip(a, b))
        put(w, [a, b], [0], [step(MULTIPLY, 2, 0), step(MULTIPLY, 2, 1), step(ADD, 5, 3)], [4, 6],
            list(y), identities=[1, 0], commutes=False, note="many maps, one after the other")
    x = small("bf16", (50, 3), 8)
    put(w, [x], [0], [step(MAXIMUM, 0, 1)], [2], [x.max(0)], note="many lines")
    x = small("f64", (4, 2), 9) / 4
    total = x.sum(1)
    for op, f in ((FLOOR, np.floor), (CEIL, np.ceil), (SIGN, np.sign)):
        put(w, [x], [1], [step(ADD, 0, 1), step(op, 2)], [3], [f(total)], note=f.__name__)
    for op, f in ((SINE, np.sin), (ERF, scipy.special.erf)):
        put(w, [x], [1], [step(ADD, 0, 1), step(op, 2)], [3], [f(total)], note=f.__name__,
            bound=within("the accuracy of the function", ulp=4))
    w.write()
