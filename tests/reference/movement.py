"""Reference data for ops that create or move elements: constant, iota, broadcast_in_dim, transpose, reshape,
concatenate, slice, gather, scatter_add (rows of a table)."""
import struct

import jax
import numpy as np

from reference_data import *

WHOLE = -1


def main():
    w = Writer("movement")

    for name in DTYPES:
        for value in awkward(name)[:12]:
            bits = struct.unpack("<q", struct.pack("<d", float(value)))[0] \
                if name in FLOATS else int(value)
            w.case("constant", [], np.full((3,), value), [bits])
    third = struct.unpack("<q", struct.pack("<d", 1 / 3))[0]
    for name in FLOATS:
        w.case("constant", [], np.full((2, 1), cast(name, 1 / 3)), [third], note="rounds")
        w.case("constant", [], cast(name, 1 / 3), [third], note="rank 0")
    w.case("constant", [], np.full((0, 2), 5, np.int32), [5])

    for name in NUMBERS:
        for shape in ((5,), (2, 3), (3, 1, 2), (0, 4), (1,)):
            for dim in range(len(shape)):
                y = np.asarray(jax.lax.broadcasted_iota(np.int64, shape, dim))
                w.case("iota", [], cast(name, y), [dim])
    w.case("iota", [], cast("bf16", np.arange(300)), [0], note="above 256 not every integer")

    def broadcast(x, to, dims, note=""):
        y = np.asarray(jax.lax.broadcast_in_dim(x, to, dims))
        w.case("broadcast_in_dim", [x], y, dims, note=note)

    def transpose(x, permutation, note=""):
        w.case("transpose", [x], np.asarray(jax.lax.transpose(x, permutation)), permutation, note=note)

    def reshape(x, to, note=""):
        w.case("reshape", [x], np.reshape(x, to), note=note)

    def concatenate(parts, dim, note=""):
        w.case("concatenate", parts, np.concatenate(parts, dim), [dim], note=note)

    def slice_of(x, start, limit, note=""):
        y = x[tuple(slice(s, None if l == WHOLE else l) for s, l in zip(start, limit))]
        w.case("slice", [x], y, [*start, *limit], note=note)

    for name in DTYPES:
        x = awkward(name)[:4]
        broadcast(x, (2, 4), (1,), "special values")
        transpose(x.reshape(2, 2), (1, 0), "special values")
        reshape(x, (2, 2), "special values")
        concatenate([x, x[:1]], 0, "special values")
        slice_of(x, [1], [3], "special values")

    r = random
    broadcast(r("f32", ()), (), ())
    broadcast(r("f32", ()), (2, 3), ())
    broadcast(r("f32", (3,)), (3, 2), (0,))
    broadcast(r("i64", (1,)), (4,), (0,), "a dimension of size 1")
    broadcast(r("bf16", (2, 1, 3)), (2, 4, 3), (0, 1, 2))
    broadcast(r("u8", (2, 1)), (3, 2, 5, 4), (1, 3))
    broadcast(r("f32", (2, 3)), (2, 2, 3, 2), (1, 2))
    broadcast(r("f64", (0, 2)), (3, 0, 2), (1, 2), "empty")
    broadcast(r("i32", (1, 2)), (0, 2), (0, 1), "to nothing")
    broadcast(r("i1", (1, 1)), (1, 1, 1), (0, 2))

    transpose(r("f32", ()), ())
    transpose(r("f64", (5,)), (0,))
    transpose(r("f32", (17, 35)), (1, 0), "more than a tile")
    transpose(r("i64", (2, 3, 4)), (2, 0, 1))
    transpose(r("bf16", (2, 3, 4)), (1, 0, 2))
    transpose(r("u8", (2, 1, 3, 2)), (3, 1, 0, 2))
    transpose(r("i32", (3, 0, 2)), (2, 1, 0), "empty")
    transpose(r("f16", (2, 2, 2, 2, 2)), (4, 2, 0, 3, 1))

    reshape(r("f32", ()), (1, 1))
    reshape(r("f64", (1,)), ())
    reshape(r("i32", (4, 6)), (8, 3), "no common refinement")
    reshape(r("bf16", (2, 3, 4)), (24,))
    reshape(r("i1", (6, 2)), (3, 1, 4))
    reshape(r("u8", (0, 3)), (5, 0), "empty")

    concatenate([r("f32", (2, 3)), r("f32", (2, 1), 1), r("f32", (2, 4), 2)], 1)
    concatenate([r("i64", (1, 2, 2)), r("i64", (3, 2, 2), 1)], 0)
    concatenate([r("bf16", (2, 2, 3)), r("bf16", (2, 5, 3), 1)], 1)
    concatenate([r("u8", (2, 0)), r("u8", (2, 3), 1), r("u8", (2, 0), 2)], 1, "with empty operands")
    concatenate([r("f64", (0, 2)), r("f64", (0, 3), 1)], 1, "empty")
    concatenate([r("f16", (3,))], 0, "one operand")

    slice_of(r("f32", (5, 6)), [1, 2], [4, 5])
    slice_of(r("i64", (5, 6)), [0, 3], [WHOLE, 6])
    slice_of(r("bf16", (3, 4, 5)), [0, 1, 0], [WHOLE, 2, WHOLE])
    slice_of(r("u8", (4,)), [2], [2], "nothing")
    slice_of(r("f64", (4, 0)), [1, 0], [3, WHOLE], "of nothing")
    slice_of(r("f32", ()), [], [], "rank 0")
    slice_of(r("i32", (1, 1)), [0, 0], [1, WHOLE])
    w.write()

    w = Writer("rows")

    def gather(table, indices, note=""):
        clamped = np.clip(indices.astype(np.int64), 0, table.shape[0] - 1)
        w.case("gather", [table, indices], table[clamped], note=note)

    def scatter_add(indices, updates, rows, note="", bound=EXACT):
        name = name_of(updates)
        out = np.zeros((rows, *updates.shape[indices.ndim:]), wide(updates).dtype)
        good = (indices.astype(np.int64) >= 0) & (indices.astype(np.int64) < rows)
        with np.errstate(invalid="ignore"):
            np.add.at(out, indices[good], wide(updates)[good])
        w.case("scatter", [indices, updates], cast(name, out), [1], bound, note)

    for name in DTYPES:
        gather(random(name, (4, 3)), small("i32", (5,), 1, 0, 3))
    out_of_range = np.array([-1, 0, 3, 4, -2 ** 31, 2 ** 31 - 1], np.int32)
    gather(random("f32", (4, 2)), out_of_range, "indices out of range are clamped")
    gather(random("f64", (4,)), np.array([-2 ** 63, 2 ** 63 - 1, 2 ** 32, 1], np.int64), "64 bits")
    gather(random("i32", (3, 2)), np.array([0, 255, 128], np.uint8), "unsigned")
    gather(random("f32", (4, 2, 2)), small("i64", (2, 3), 2, 0, 3))
    gather(random("bf16", (4, 2)), np.array(2, np.int32), "one row")
    gather(random("f16", (4, 0)), small("i32", (3,), 3, 0, 3), "empty rows")
    gather(random("f32", (4, 2)), small("i32", (0, 2), 4), "no index")
    gather(random("u8", (1, 3)), small("i32", (3,), 5, 0, 0))

    for name in NUMBERS:
        scatter_add(small("i32", (7,), 1, 0, 3), small(name, (7, 2), 2), 4)
    scatter_add(out_of_range, small("f32", (6, 2), 3), 4, "indices out of range are ignored")
    scatter_add(np.array([-2 ** 63, 2 ** 63 - 1, 2 ** 32, 1], np.int64), small("f64", (4,), 4), 3,
                "64 bits")
    scatter_add(np.array([0, 255, 0], np.uint8), small("i32", (3, 2), 5), 2, "unsigned")
    scatter_add(np.zeros((4,), np.int32), np.full((4,), 200, np.uint8), 1, "wraps")
    scatter_add(np.zeros((4,), np.int32), np.full((4,), 2 ** 30, np.int32), 1, "wraps")
    scatter_add(small("i64", (2, 3), 6, 0, 4), small("f32", (2, 3, 2, 2), 7), 5)
    scatter_add(np.array(1, np.int32), small("f32", (3,), 8), 3, "one row")
    scatter_add(small("i32", (0,), 9), small("f32", (0, 2), 9), 3, "no index gives zeros")
    scatter_add(small("i32", (3,), 10), small("f32", (3, 2), 10), 0, "no row")
    scatter_add(np.zeros((3,), np.int32), cast("f32", [inf, 1.0, -inf]), 2, "infinities")
    scatter_add(np.zeros((600,), np.int32), np.ones((600,), DTYPES["bf16"]), 1,
                "a sum in bf16 would stop at 256")
    x = random("f32", (9,), 11)
    scatter_add(np.array([0, 1, 0, 1, 0, 1, 0, 1, 0]), x, 2,
                bound=within("n roundings of the sum of the magnitudes", 0,
                             9 * eps("f32") * float(np.abs(x).sum())))
    w.write()
