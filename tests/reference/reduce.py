"""Reference data for reduce: NumPy in binary64, rounded once."""
import numpy as np

from reference_data import *

COMBINERS = {"add": 1, "max": 2, "min": 3}


def identity(combiner, name):
    if combiner == "add":
        return 0
    if name in FLOATS:
        return -inf if combiner == "max" else inf
    return least(name) if combiner == "max" else greatest(name)


def reduce(combiner, x, dims):
    name = name_of(x)
    with np.errstate(all="ignore"):
        f = {"add": np.add, "max": np.maximum, "min": np.minimum}[combiner]
        y = f.reduce(wide(x), axis=tuple(dims), initial=identity(combiner, name),
                     dtype=None if name in FLOATS else x.dtype)
    return cast(name, y)


def sum_bound(x, dims):
    """Returns a bound for n roundings of partial sums, each at most the sum of the magnitudes."""
    name = name_of(x)
    n = int(np.prod([x.shape[d] for d in dims]))
    magnitudes = np.abs(wide(x)).sum(axis=tuple(dims))
    most = float(magnitudes.max()) if magnitudes.size else 0.0
    computed = "f64" if name == "f64" else "f32"
    absolute = n * eps(computed) * most
    return within("n roundings of the sum of the magnitudes", 1, absolute)


def main():
    w = Writer("reduce")

    def put(combiner, x, dims, bound=EXACT, note=""):
        w.case("reduce", [x], reduce(combiner, x, dims), [COMBINERS[combiner], *dims], bound,
               (combiner + "  " + note).strip())

    for combiner in COMBINERS:
        for name in NUMBERS:
            row = awkward(name)
            if combiner != "add" and name in FLOATS:
                put(combiner, row, [0], note="NaN wins")
                put(combiner, row[~np.isnan(wide(row))][2:], [0], note="infinities")
                put(combiner, row[:2], [0], UNSIGNED_ZERO,
                    "zeros of both signs")
            elif name in FLOATS:
                put(combiner, cast(name, [[1.0, inf, -inf, inf, nan, -0.0], [2.0, 1, -3, -inf, 1, -0.0]]),
                    [0], note="infinities, NaN, negative zeros")
            else:
                put(combiner, np.concatenate([row, row]), [0], note="wraps" * (combiner == "add"))
            put(combiner, small(name, (4, 6), 1), [1])
            put(combiner, small(name, (4, 6), 2), [0])
            put(combiner, small(name, (0, 3), 3), [0], note="an empty dimension gives the identity")
        put(combiner, small("f32", (3, 4, 5), 4), [0, 2], note="not next to each other")
        put(combiner, small("f32", (3, 4, 5), 4), [0, 1, 2])
        put(combiner, small("f32", (2, 3, 2, 3), 5), [1, 3])
        put(combiner, small("f32", (2, 1, 3), 6), [1], note="a dimension of size 1")
        put(combiner, small("i32", (3, 0), 7), [0], note="an empty result")
        put(combiner, small("i32", (3, 4), 8), [], note="no dimension")
        put(combiner, small("f64", (1,), 9), [0])
    for name, shape, dims in (("f32", (37,), [0]), ("f32", (5, 67), [1]), ("f32", (67, 5), [0]),
                              ("f64", (41,), [0]), ("f64", (7, 3, 5), [0, 2]), ("bf16", (3, 31), [1]),
                              ("f16", (31, 3), [0]), ("bf16", (300,), [0])):
        x = random(name, shape, 10)
        put("add", x, dims, sum_bound(x, dims))
        put("max", x, dims)
        put("min", x, dims)
    ones = np.ones((1500,), DTYPES["bf16"])
    put("add", ones, [0], note="a sum in bf16 would stop at 256")
    w.write()
