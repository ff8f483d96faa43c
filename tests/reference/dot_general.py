"""Reference data for dot_general: jax.lax.dot_general in binary64, rounded once; integers in their own type."""
import jax
import numpy as np

from reference_data import *


def main():
    w = Writer("dot_general")

    def put(lhs, rhs, lb, rb, lc, rc, note="", real=False):
        name = name_of(lhs)
        dims = ((lc, rc), (lb, rb))
        y = np.asarray(jax.lax.dot_general(wide(lhs), wide(rhs), dims))
        bound = UNSIGNED_ZERO if name in FLOATS else EXACT
        if real:
            n = int(np.prod([lhs.shape[d] for d in lc]))
            magnitudes = jax.lax.dot_general(np.abs(wide(lhs)), np.abs(wide(rhs)), dims)
            unit = eps("f64" if name == "f64" else "f32")
            bound = within("n products and sums, each rounded", 1,
                           (n + 1) * unit * float(np.max(magnitudes)))
        w.case("dot_general", [lhs, rhs], cast(name, y),
               [len(lb), len(lc), *lb, *rb, *lc, *rc], bound, note)

    for name in NUMBERS:
        put(small(name, (3, 4), 1), small(name, (4, 5), 2), [], [], [1], [0], "matrix product")
        put(random(name, (5, 7), 3), random(name, (7, 3), 4), [], [], [1], [0], "any values",
            name in FLOATS)
        put(small(name, (2, 3, 4), 5), small(name, (2, 4, 2), 6), [0], [0], [2], [1], "batch")
    layouts = ((3, 4), (4, 5), [1], [0]), ((4, 3), (4, 5), [0], [0]), ((3, 4), (5, 4), [1], [1]), \
        ((4, 3), (5, 4), [0], [1])
    for name in ("f32", "f64", "i32"):
        for ls, rs, lc, rc in layouts:
            put(small(name, ls, 7), small(name, rs, 8), [], [], lc, rc, "storage orders")
        put(small(name, (4,), 9), small(name, (4,), 10), [], [], [0], [0], "vectors")
        put(small(name, (3, 4), 11), small(name, (4,), 12), [], [], [1], [0], "matrix and vector")
        put(small(name, (4,), 13), small(name, (4, 3), 14), [], [], [0], [0], "vector and matrix")
        put(small(name, (4,), 15), small(name, (2, 3), 16), [], [], [], [], "nothing contracted")
        put(small(name, (), 17), small(name, (), 18), [], [], [], [], "scalars")
        put(small(name, (2, 3), 19), small(name, (3, 2), 20), [0, 1], [1, 0], [], [], "all batch")
        put(small(name, (4, 2, 3, 5), 21), small(name, (3, 5, 4), 22), [0], [2], [3, 2], [1, 0],
            "two contracted dimensions, in another order")
        put(small(name, (2, 3, 2, 3), 23), small(name, (3, 2, 2, 3), 24), [2, 1], [1, 0], [0], [2],
            "two batch dimensions, in another order")
        put(small(name, (1, 4), 25), small(name, (4, 1), 26), [], [], [1], [0], "sizes 1")
        put(small(name, (3, 0), 27), small(name, (0, 2), 28), [], [], [1], [0],
            "an empty contraction gives zeros")
        put(small(name, (0, 3), 29), small(name, (3, 2), 30), [], [], [1], [0], "an empty result")
        put(small(name, (0, 2, 3), 31), small(name, (0, 3, 2), 32), [0], [0], [2], [1],
            "an empty batch")
    put(random("f32", (17, 33), 33), random("f32", (33, 19), 34), [], [], [1], [0], real=True)
    put(random("f64", (17, 33), 35), random("f64", (19, 33), 36), [], [], [1], [1], real=True)
    put(cast("f32", [[inf, 1.0, 0.0], [1.0, 2.0, nan], [1.0, -inf, 1.0]]),
        cast("f32", [[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]]), [], [], [1], [0], "infinities and NaN")
    put(np.full((1, 512), 1.0, DTYPES["bf16"]), np.full((512, 1), 1.0, DTYPES["bf16"]), [], [], [1],
        [0], "a sum in bf16 would stop at 256")
    put(np.full((2, 4), 256.0, DTYPES["f16"]), np.full((4, 2), 256.0, DTYPES["f16"]), [], [], [1],
        [0], "overflows when it is rounded")
    w.write()
