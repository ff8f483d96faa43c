"""Reference data for pad, reverse, roll, strided slice, dynamic_slice, dynamic_update_slice: jax.lax and NumPy."""
import jax
import numpy as np

from reference_data import *

WHOLE = -1


def main():
    w = Writer("place")
    r = random

    def pad(x, value, amounts, note=""):
        y = np.asarray(jax.lax.pad(x, value, amounts))
        w.case("pad", [x, value], y, [a[k] for k in range(3) for a in amounts], note=note)

    for name in DTYPES:
        x = awkward(name)[:4]
        pad(x.reshape(2, 2), awkward(name)[1], [(1, 0, 0), (0, 2, 1)], "special values")
        w.case("reverse", [x], x[::-1], [0], note="special values")
        w.case("roll", [x], np.roll(x, 3), [0, 3], note="special values")
    for shape, dim, shift in [((3, 4), 1, 1), ((3, 4), 0, -1), ((2, 3, 4), 1, 7), ((5,), 0, 0),
                              ((4, 1), 1, 2), ((0, 3), 0, 2), ((2, 5), 1, -12)]:
        x = r("f32", shape)
        w.case("roll", [x], np.roll(x, shift, dim), [dim, shift])
    value = np.float32(-7)
    pad(r("f32", ()), value, [], "rank 0")
    pad(r("f32", (5,)), value, [(0, 0, 0)], "nothing")
    pad(r("f32", (5,)), value, [(-2, 1, 0)], "negative low")
    pad(r("f32", (5,)), value, [(-1, -3, 2)], "negative padding takes padded elements")
    pad(r("f32", (3,)), value, [(-2, -2, 1)], "only padding is left")
    pad(r("f32", (0,)), value, [(2, 1, 3)], "of nothing")
    pad(r("f32", (2, 0)), value, [(1, 1, 1), (0, 0, 5)], "to nothing")
    pad(r("f32", (3, 4)), value, [(1, 2, 3), (-1, 4, 0)])
    pad(r("i64", (2, 3, 2)), np.int64(9), [(0, 1, 0), (2, 0, 1), (0, 0, 0)])
    pad(r("bf16", (1,)), cast("bf16", nan), [(0, 0, 4)], "one element has nothing between")

    def reverse(x, dims, note=""):
        w.case("reverse", [x], np.asarray(jax.lax.rev(x, dims)), dims, note=note)

    reverse(r("f32", (3, 4)), (1,))
    reverse(r("f32", (3, 4)), (0, 1))
    reverse(r("i64", (2, 3, 4)), (0, 2))
    reverse(r("bf16", (2, 3)), (), "no dimension")
    reverse(r("f32", ()), (), "rank 0")
    reverse(r("u8", (0, 3)), (0, 1), "empty")
    reverse(r("f64", (1, 1)), (0,))

    def strided(x, start, limit, stride, note=""):
        ends = [n if l == WHOLE else l for n, l in zip(x.shape, limit)]
        w.case("slice", [x], np.asarray(jax.lax.slice(x, start, ends, stride)),
               [*start, *limit, *stride], note=("strided " + note).strip())

    strided(r("f32", (9,)), [0], [WHOLE], [2])
    strided(r("f32", (9,)), [1], [8], [3])
    strided(r("f32", (9,)), [4], [5], [7], "one element")
    strided(r("i64", (5, 6)), [0, 1], [5, WHOLE], [2, 4])
    strided(r("bf16", (4, 6, 3)), [0, 0, 2], [WHOLE, 6, 3], [1, 5, 1])
    strided(r("u8", (4, 4)), [2, 1], [2, 4], [3, 1], "nothing")
    strided(r("f64", (2, 3)), [0, 0], [WHOLE, WHOLE], [1, 1], "whole")

    def starts_of(numbers, dtype=np.int32):
        return [np.array(n, dtype) for n in numbers]

    def box(shape, sizes, starts):
        return tuple(slice(s, s + size) for s, size in
                     ((min(max(int(s), 0), n - size), size)
                      for s, n, size in zip(starts, shape, sizes)))

    def dynamic_slice(x, sizes, starts, dtype=np.int32, note=""):
        actual = [n if s == WHOLE else s for s, n in zip(sizes, x.shape)]
        w.case("dynamic_slice", [x, *starts_of(starts, dtype)], x[box(x.shape, actual, starts)],
               sizes, note=note)

    def update(x, sizes, starts, dtype=np.int32, note=""):
        part, y = random(name_of(x), tuple(sizes), 99), x.copy()
        y[box(x.shape, sizes, starts)] = part
        w.case("dynamic_update_slice", [x, part, *starts_of(starts, dtype)], y, note=note)

    for call, whole in ((dynamic_slice, True), (update, False)):
        call(r("f32", (5,)), [2], [1])
        call(r("f32", (5,)), [2], [4], note="clamped at the end")
        call(r("f32", (5,)), [2], [-3], note="clamped at the start")
        call(r("f64", (5,)), [2], [2 ** 62], np.int64, "clamped, 64 bits")
        call(r("i32", (5,)), [2], [200], np.uint8, "clamped, unsigned")
        call(r("i64", (4, 6)), [2, 3], [1, 2])
        call(r("bf16", (4, 6)), [WHOLE if whole else 4, 3], [7, 2], note="a whole dimension")
        call(r("u8", (3, 4, 2)), [1, 4, 1], [2, 1, 1])
        call(r("f16", (3, 4)), [0, 2], [1, 1], note="an empty box")
        call(r("i1", (3,)), [3], [1])
        call(r("f32", ()), [], [], note="rank 0")
    w.write()
