"""Reference data for gather and scatter with dimension numbers (jax.lax), and scatter of rows (NumPy)."""
import jax
import numpy as np

from reference_data import *

WHOLE = -1
ASSIGN, ADD, MAX, MIN, MULTIPLY = range(5)
MODES = jax.lax.GatherScatterMode


def stored(offset, collapsed, operand_batching, indices_batching, index_map, vector_dim):
    """Returns dimension numbers as the IR stores them: each list after its length."""
    lists = (offset, collapsed, operand_batching, indices_batching, index_map)
    return [v for l in lists for v in (len(l), *l)] + [vector_dim]


def vectors_last(indices, vector_dim, batching):
    """Moves the index vectors to the last dimension, where JAX expects them, and renumbers batching dimensions."""
    indices = indices.astype(np.int64)
    if vector_dim == indices.ndim:
        return indices[..., None], batching
    return np.moveaxis(indices, vector_dim, -1), \
        tuple(b - (b > vector_dim) for b in batching)


def main():
    w = Writer("gather")
    r = random

    def gather(x, indices, sizes, offset, collapsed, index_map, vector_dim, operand_batching=(),
               indices_batching=(), note=""):
        last, batching = vectors_last(indices, vector_dim, indices_batching)
        actual = [n if s == WHOLE else s for s, n in zip(sizes, x.shape)]
        y = jax.lax.gather(x, last, jax.lax.GatherDimensionNumbers(
            tuple(offset), tuple(collapsed), tuple(index_map), tuple(operand_batching), batching),
            actual, mode=MODES.CLIP)
        w.case("gather", [x, indices], np.asarray(y),
               stored(offset, collapsed, operand_batching, indices_batching, index_map, vector_dim) +
               list(sizes), note=note)

    index = lambda shape, seed, high, dtype=np.int32: \
        np.random.default_rng(seed).integers(-1, high + 2, shape).astype(dtype)
    for name in DTYPES:
        gather(r(name, (5, 4)), index((3, 2), 1, 4), [2, 3], [1, 2], [], [0, 1], 1,
               note="boxes, clamped")
    x = r("f32", (5, 6, 4))
    gather(x, index((7, 1), 2, 4), [1, WHOLE, WHOLE], [1, 2], [0], [0], 1, note="rows")
    gather(x, index((7,), 3, 4), [1, WHOLE, WHOLE], [1, 2], [0], [0], 1, note="scalar indices")
    gather(x, index((2, 3), 4, 4), [WHOLE, 1, WHOLE], [0, 3], [1], [1], 2, note="columns")
    gather(x, index((2, 7), 5, 4), [1, 2, 3], [1, 2], [0], [2, 0], 0, note="index vectors first")
    gather(x, index((3, 2, 4), 6, 4), [1, 1, WHOLE], [1], [0, 1], [1, 0], 1,
           note="index vectors in the middle")
    gather(x, index((3, 3), 7, 4, np.int64), [1, 1, 1], [], [0, 1, 2], [0, 1, 2], 1,
           note="single elements, 64 bits")
    gather(x, index((5, 3, 1), 8, 4), [1, 2, WHOLE], [2, 3], [], [1], 2, [0], [0], note="batching")
    gather(x, index((3, 1, 4, 5), 9, 4), [1, 2, 1], [0], [], [1], 1, [0, 2], [3, 2],
           note="two batching dimensions")
    gather(x, np.abs(index((4, 2), 10, 4)).astype(np.uint8), [2, 1, WHOLE], [0, 2], [1], [1, 0], 1,
           note="unsigned")
    gather(x, index((0, 2), 11, 4), [2, 1, WHOLE], [0, 2], [1], [1, 0], 1, note="no index")
    gather(x, index((4, 2), 12, 4), [0, 1, 2], [0, 2], [1], [1, 0], 1, note="empty windows")
    gather(x, index((2,), 13, 4), [2, 2, 2], [0, 1, 2], [], [0, 2], 0, note="one window")
    gather(x, np.zeros((0,), np.int32), [2, 2, 2], [0, 1, 2], [], [], 0, note="no start")

    functions = {ASSIGN: jax.lax.scatter, ADD: jax.lax.scatter_add, MAX: jax.lax.scatter_max,
                 MIN: jax.lax.scatter_min, MULTIPLY: jax.lax.scatter_mul}
    words = ("assign", "add", "max", "min", "multiply")

    def identity(how, name):
        if how in (MAX, MIN):
            ends = (-inf, inf) if name in FLOATS else (least(name), greatest(name))
            return ends[how - MAX]
        return 1 if how == MULTIPLY else 0

    def scatter(how, x, indices, updates, window, inserted, index_map, vector_dim, x_batching=(),
                indices_batching=(), note="", attrs=None):
        """Writes a case of scatter. If x is a shape, the case has no operand for it."""
        name = name_of(updates)
        has_input = not isinstance(x, tuple)
        start = x if has_input else cast(name, np.full(x, identity(how, name)))
        last, batching = vectors_last(indices, vector_dim, indices_batching)
        f = functions[how]
        y = f(wide(start), last, wide(updates), jax.lax.ScatterDimensionNumbers(
            tuple(window), tuple(inserted), tuple(index_map), tuple(x_batching), batching),
            mode=MODES.FILL_OR_DROP)
        if attrs is None:
            attrs = stored(window, inserted, x_batching, indices_batching, index_map, vector_dim)
        w.case("scatter", ([x] if has_input else []) + [indices, updates],
               cast(name, np.asarray(y)), [how, *attrs],
               UNSIGNED_ZERO if name in FLOATS and how == ADD else EXACT,
               f"{words[how]}  {note}".rstrip())

    for how in functions:
        nonzero = lambda v: np.where(v == 0, 3, v).astype(v.dtype)
        for name in NUMBERS:
            x, u = nonzero(small(name, (5, 4), 1)), nonzero(small(name, (3, 2, 3), 2))
            scatter(how, x, index((3, 2), 3, 3), u, [1, 2], [], [0, 1], 1,
                    note="boxes, out of range left out")
            x, u = nonzero(small(name, (5, 2), 4)), nonzero(small(name, (4, 2), 5))
            scatter(how, x, index((4,), 6, 4), u, [1], [0], [0], 1, note="rows", attrs=[])
            if how != ASSIGN:
                scatter(how, (5, 2), index((4,), 7, 4), u, [1], [0], [0], 1,
                        note="rows without an input", attrs=[])
        x = nonzero(small("f32", (5, 6, 4), 8))
        u = lambda shape, seed: nonzero(small("f32", shape, seed))
        scatter(how, x, index((2, 3), 9, 4), u((5, 2, 3, 4), 10), [0, 3], [1], [1], 2,
                note="columns")
        scatter(how, x, index((2, 7), 11, 3), u((7, 2, 3), 12), [1, 2], [0], [2, 0], 0,
                note="index vectors first, overlapping windows")
        scatter(how, x, index((5, 3, 1), 13, 4), u((5, 3, 2, 4), 14), [2, 3], [], [1], 2, [0], [0],
                note="batching")
        scatter(how, x, index((9, 3), 15, 3), u((9,), 16), [], [0, 1, 2], [0, 1, 2], 1,
                note="single elements")
        scatter(how, x, index((0, 3), 17, 3), u((0,), 18), [], [0, 1, 2], [0, 1, 2], 1,
                note="no update")
        scatter(how, x, np.array([1, 2], np.int64), u((2, 2, 2), 19), [0, 1, 2], [], [0, 2], 0,
                note="one window")
        if how != ASSIGN:
            scatter(how, (5, 6, 4), index((5, 3, 1), 20, 4), u((5, 3, 2, 4), 21), [2, 3], [], [1], 2,
                    [0], [0], note="batching without an input")
    bits = {5: np.bitwise_and, 6: np.bitwise_or}
    for how, name in ((5, "i32"), (6, "u8"), (5, "i1"), (6, "i1"), (6, "i64")):
        x, u, i = r(name, (4, 2)), r(name, (7, 2), 1), index((7,), 22, 3)
        y = x.copy()
        for at, row in zip(i, u):
            if 0 <= at < 4:
                y[at] = bits[how](y[at], row)
        w.case("scatter", [x, i, u], y, [how], note=bits[how].__name__)
        start = np.full((3, 5), -1 if how == 5 and name != "i1" else how == 5).astype(x.dtype)
        i, u = index((9, 2), 23, 2), r(name, (9,), 2)
        for at, row in zip(i, u):
            if (at >= 0).all() and (at < (3, 5)).all():
                start[tuple(at)] = bits[how](start[tuple(at)], row)
        w.case("scatter", [i, u], start, [how, *stored([], [0, 1], [], [], [0, 1], 1)],
               note=f"{bits[how].__name__} without an input, index vectors")
    x, u = r("i1", (4, 2)), r("i1", (3, 2), 1)
    scatter(ASSIGN, x, np.array([0, 2, 0], np.int32), u, [1], [0], [0], 1, attrs=[],
            note="the last one wins")
    w.write()
