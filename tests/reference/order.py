"""Reference data for sort, top_k, reduce with positions and optimization_barrier: JAX, and NumPy's stable sort."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from reference_data import *

REDUCERS = {"argmax": 7, "argmin": 8}


def stable_order(keys, axis, descending):
    """Returns the positions that sort lexicographically by keys. Equal keys keep their order, NaN is the maximum,
    and -0 equals +0."""
    order = np.broadcast_to(
        np.arange(keys[0].shape[axis]).reshape([-1 if d == axis else 1 for d in range(keys[0].ndim)]),
        keys[0].shape)
    for key in reversed(keys):  # from the least significant key
        line = np.take_along_axis(wide(key), order, axis)
        if descending:  # equal elements must keep their order
            ranks = np.unique(line, return_inverse=True)[1].reshape(line.shape)
            line = -ranks
        order = np.take_along_axis(order, np.argsort(line, axis, kind="stable"), axis)
    return order


def sort(operands, axis, keys, descending):
    order = stable_order(operands[:keys], axis, descending)
    return [np.take_along_axis(x, order, axis) for x in operands]


def subnormal(x):
    """True if x has subnormal numbers, which JAX treats as zeros."""
    if name_of(x) not in FLOATS:
        return False
    magnitudes = np.abs(wide(x))
    return bool(((magnitudes > 0) & (magnitudes < least_normal(name_of(x)))).any())


def put_sort(w, operands, axis, keys=1, descending=False, note=""):
    results = sort(operands, axis, keys, descending)
    if not descending and not any(subnormal(x) for x in operands[:keys]):  # JAX agrees
        found = lax.sort([jnp.asarray(x) for x in operands], dimension=axis, num_keys=keys,
                         is_stable=True)
        for x, y in zip(found, results):
            np.testing.assert_array_equal(wide(x), wide(y))
    w.case("sort", operands, results, [axis, keys, int(descending)], note=note)


def total_order(x):
    """Maps floats to integers in IEEE 754's total order; returns other numbers unchanged."""
    if name_of(x) not in FLOATS:
        return x
    bits = x.view({2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize])
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def put_top_k(w, x, k, note=""):
    positions = stable_order([total_order(x)], x.ndim - 1, True)[..., :k].astype(np.int32)
    values = np.take_along_axis(x, positions, x.ndim - 1)
    if x.dtype != np.bool_:  # JAX agrees
        for found, expected in zip(lax.top_k(x, k), (values, positions)):
            np.testing.assert_array_equal(wide(found), wide(expected))
    given = np.broadcast_to(np.arange(x.shape[-1], dtype=np.int32), x.shape)
    w.case("top_k", [x, given], [values, positions], [k], note=note)


def extremes(which, x, positions, dims):
    """Applies JAX's reducer of argmax or argmin to given positions."""
    def pick(a, b):
        (x, i), (y, j) = a, b
        better = (x > y if which == "argmax" else x < y) | (x != x)
        same = (x == y) | ((x != x) & (y != y))
        take = jnp.where(same, i < j, better)
        return jnp.where(take, x, y), jnp.where(take, i, j)
    name = name_of(x)
    worst = {"argmax": -inf, "argmin": inf} if name in FLOATS else \
        {"argmax": least(name), "argmin": greatest(name)}
    last = jnp.asarray(np.iinfo(positions.dtype).max, positions.dtype)  # loses every tie
    values, found = lax.reduce((jnp.asarray(x), jnp.asarray(positions)),
                               (jnp.asarray(worst[which], x.dtype), last), pick, dims)
    if 0 in [x.shape[d] for d in dims]:
        found = jnp.zeros_like(found)
    return [np.asarray(values), np.asarray(found)]


def put_reduce(w, which, x, dims, positions=None, note=""):
    iota = positions is None
    if iota:
        positions = np.broadcast_to(
            np.arange(x.shape[dims[0]], dtype=np.int32)
            .reshape([-1 if d == dims[0] else 1 for d in range(x.ndim)]), x.shape)
    results = extremes(which, x, positions, dims)
    if iota and len(dims) == 1 and x.shape[dims[0]] > 0:
        f = lax.argmax if which == "argmax" else lax.argmin
        np.testing.assert_array_equal(np.asarray(f(jnp.asarray(x), dims[0], np.int32)), results[1])
    w.case("reduce", [x, positions], results, [REDUCERS[which], *dims],
           note=(which + "  " + note).strip())


def main():
    w = Writer("order")
    zeros = [0.0, -0.0, 1, -0.0, 0.0, -1]
    for name in NUMBERS:
        row = awkward(name)
        for descending in (False, True):
            put_sort(w, [row, np.arange(len(row), dtype=np.int32)], 0, 1, descending,
                     "special values")
        put_sort(w, [small(name, (3, 7), 1), random("f32", (3, 7), 2)], 1, note="ties")
        put_sort(w, [small(name, (7, 3), 3), small("i32", (7, 3), 4)], 0, 2, True, "two keys")
        put_top_k(w, row, 5, "special values")
        put_top_k(w, small(name, (3, 9), 5), 4, "ties: the first first")
        for which in REDUCERS:
            put_reduce(w, which, row, [0], note="special values")
            put_reduce(w, which, small(name, (4, 6), 6), [1], note="ties")
            put_reduce(w, which, small(name, (6, 4), 7), [0], note="ties")
            put_reduce(w, which, small(name, (0, 3), 8), [0],
                       note="an empty dimension: the identity, at position 0")
    for name in FLOATS:
        x = cast(name, zeros)
        for descending in (False, True):
            put_sort(w, [x, np.arange(6, dtype=np.int32)], 0, 1, descending, "-0 equals +0")
        put_top_k(w, x, 6, "+0 before -0")
        nans = cast(name, [[1, nan, 3, nan, inf], [nan, -inf, 2, 0, nan]])
        put_sort(w, [nans, np.arange(10, dtype=np.int64).reshape(2, 5)], 1, note="NaN last")
        put_top_k(w, nans, 3, "NaN first")
        put_top_k(w, np.copysign(nans, cast(name, [[1, -1, 1, 1, -1]])), 5, "NaN with its sign last")
        for which in REDUCERS:
            put_reduce(w, which, x, [0], note="-0 equals +0")
            put_reduce(w, which, cast(name, [zeros, zeros[::-1]]), [1], note="-0 equals +0")
            put_reduce(w, which, nans, [1], note="the first NaN")
            put_reduce(w, which, nans, [0], note="the first NaN")

    put_sort(w, [small("u8", (4, 5), 1), small("i1", (4, 5), 2), random("f32", (4, 5), 3)], 0, 3,
             note="three keys")
    put_sort(w, [small("i1", (9,), 1), np.arange(9, dtype=np.int32)], 0, 1, note="false first")
    put_sort(w, [cast("f32", [0.0, -0.0, nan, nan, 0.0]), np.array([5, 4, 3, 2, 1], np.int32)], 0, 2,
             note="the second key where zeros and NaN are equal")
    put_sort(w, [random("f64", (2, 5, 3), 4)], 1, note="a middle dimension")
    put_sort(w, [random("f32", (0, 3), 5)], 0, note="an empty dimension")
    put_sort(w, [random("f32", (0, 3), 5)], 1, note="no lines")
    put_sort(w, [random("f32", (1, 3), 6)], 0, note="one element")
    put_top_k(w, random("f32", (2, 3, 4), 1), 4, "all")
    put_top_k(w, random("f32", (2, 4), 2), 0, "none")
    put_top_k(w, np.zeros((2, 0), np.float32), 0, "an empty dimension")
    put_top_k(w, np.zeros((0, 3), np.float32), 2, "no lines")
    put_top_k(w, small("i1", (6,), 3), 3, "true first")
    for which in REDUCERS:
        put_reduce(w, which, small("f32", (3, 4, 5), 9), [0, 2],
                   np.arange(60, dtype=np.int64).reshape(3, 4, 5), "not next to each other")
        put_reduce(w, which, small("bf16", (3, 4), 10), [0, 1],
                   np.arange(12, dtype=np.int32)[::-1].reshape(3, 4), "the last has position 0")
        put_reduce(w, which, small("i32", (2, 40), 11), [1],
                   random("u8", (2, 40), 12), "any positions")
        put_reduce(w, which, small("f64", (2, 3), 13), [], np.zeros((2, 3), np.int32), "no dimension")
        put_reduce(w, which, small("f32", (3, 0), 14), [0], note="an empty result")
        put_reduce(w, which, random("f32", (3, 1, 2), 15), [1], note="a dimension of size 1")

    def barrier(*operands, note=""):
        results = lax.optimization_barrier([jnp.asarray(x) for x in operands])
        w.case("optimization_barrier", operands, [np.asarray(r) for r in results], note=note)

    for name in NUMBERS:
        barrier(awkward(name), note="special values")
    barrier(small("i1", (5,), 1), random("f64", (2, 3), 2), random("bf16", (), 3),
            note="operands of several types")
    barrier(np.zeros((0, 3), np.float32), np.zeros((2,), np.int32), note="an empty operand")
    w.write()
