"""Reference data for reduce with other combiners, reduce_window, select_and_scatter, select_and_gather, cumsum and
convolution: jax.lax and NumPy."""
import itertools

import jax
import numpy as np

from reference_data import *

ADD, MAX, MIN, MULTIPLY, AND, OR = range(1, 7)
COMBINERS = {
    ADD: ("add", jax.lax.add, np.add), MAX: ("max", jax.lax.max, np.maximum),
    MIN: ("min", jax.lax.min, np.minimum), MULTIPLY: ("multiply", jax.lax.mul, np.multiply),
    AND: ("and", jax.lax.bitwise_and, np.bitwise_and),
    OR: ("or", jax.lax.bitwise_or, np.bitwise_or),
}


def identity(combiner, name):
    if combiner in (MAX, MIN):
        ends = (-inf, inf) if name in FLOATS else (least(name), greatest(name))
        return ends[combiner - MAX]
    if combiner == AND:
        return True if name == "i1" else 255 if name == "u8" else -1
    return {ADD: 0, MULTIPLY: 1, OR: 0}[combiner]


def types_of(combiner):
    return (*INTEGERS, "i1") if combiner in (AND, OR) else NUMBERS


def reduce_cases(w):
    def put(combiner, x, dims, bound=EXACT, note=""):
        f = COMBINERS[combiner][2]
        with np.errstate(all="ignore"):
            y = f.reduce(wide(x), axis=tuple(dims), initial=identity(combiner, name_of(x)),
                         dtype=None if name_of(x) in FLOATS else x.dtype)
        w.case("reduce", [x], cast(name_of(x), y), [combiner, *dims], bound,
               f"{COMBINERS[combiner][0]}  {note}".rstrip())

    for combiner in (MULTIPLY, AND, OR):
        for name in types_of(combiner):
            draw = random if combiner != MULTIPLY else lambda n, s, k: small(n, s, k, -2, 3)
            zero = UNSIGNED_ZERO if name in FLOATS else EXACT
            put(combiner, draw(name, (4, 6), 1), [1], zero)
            put(combiner, draw(name, (4, 6), 2), [0], zero)
            put(combiner, draw(name, (2, 3, 4), 3), [0, 2], zero)
            put(combiner, small(name, (0, 3), 4), [0], note="an empty dimension gives the identity")
            if name not in FLOATS:
                put(combiner, random(name, (41,), 5), [0], note="any values")
    for name, bound in (("f32", 40), ("f64", 40), ("bf16", 1)):
        x = random(name, (37,), 6, 0.5, 1.5)
        put(MULTIPLY, x, [0], within("n products, each rounded; 16-bit floats once", bound))
    put(MULTIPLY, cast("f32", [[inf, -inf, nan, 0.0, inf], [2, 2, 1, -1, 0]]), [0],
        note="infinities, NaN")


def flat(config):
    """Returns the lists of a window in the order in which the IR stores them."""
    return [v for key in ("size", "stride", "base", "dilation") for v in config[key]] + \
        [p[0] for p in config["padding"]] + [p[1] for p in config["padding"]]


def window(size, stride=None, padding=None, base=None, dilation=None):
    n = len(size)
    return {"size": tuple(size), "stride": tuple(stride or [1] * n), "base": tuple(base or [1] * n),
            "dilation": tuple(dilation or [1] * n), "padding": tuple(padding or [(0, 0)] * n)}


def reduce_window_of(combiner, x, c):
    _, f, _ = COMBINERS[combiner]
    init = wide(cast(name_of(x), identity(combiner, name_of(x))))
    return np.asarray(jax.lax.reduce_window(
        wide(x), init[()], f, c["size"], c["stride"], c["padding"], c["base"], c["dilation"]))


def reduce_window_cases(w):
    def put(combiner, x, c, bound=EXACT, note=""):
        w.case("reduce_window", [x], cast(name_of(x), reduce_window_of(combiner, x, c)),
               [combiner, *flat(c)], bound, f"{COMBINERS[combiner][0]}  {note}".rstrip())

    for combiner in COMBINERS:
        for name in types_of(combiner):
            draw = random if combiner in (AND, OR) else small
            zero = UNSIGNED_ZERO if name in FLOATS else EXACT
            put(combiner, draw(name, (7,), 1), window([3], [2], [(1, 1)]), zero)
            put(combiner, draw(name, (4, 5), 2), window([2, 2]), zero)
        name = "i32" if combiner in (AND, OR) else "f32"
        draw = random if combiner in (AND, OR) else small
        zero = UNSIGNED_ZERO if name in FLOATS else EXACT
        x = draw(name, (6, 7), 3)
        put(combiner, x, window([2, 3], [2, 1], [(1, 0), (0, 2)]), zero)
        put(combiner, x, window([2, 3], dilation=[3, 2]), zero, "window dilation")
        put(combiner, x, window([2, 3], [1, 2], [(0, 1), (2, 2)], [2, 3]), zero, "base dilation")
        put(combiner, x, window([3, 2], [2, 3], [(2, 1), (1, 0)], [2, 1], [1, 2]), zero, "all of it")
        put(combiner, x, window([1, 1]), zero, "the identity")
        put(combiner, x, window([1, 1], [2, 3]), zero, "strides only")
        put(combiner, x, window([6, 7]), zero, "one window")
        put(combiner, draw(name, (2,), 4), window([2], padding=[(5, 4)]), zero,
            "windows without an element")
        put(combiner, draw(name, (3,), 5), window([5]), zero, "a window that does not fit")
        put(combiner, draw(name, (0, 2), 6), window([2, 1], padding=[(1, 2), (0, 0)]), zero,
            "of nothing")
        put(combiner, draw(name, (), 7), window([]), zero, "rank 0")
        put(combiner, draw(name, (2, 5, 5, 3), 8), window([1, 3, 3, 1], [1, 2, 2, 1],
            [(0, 0), (1, 1), (1, 1), (0, 0)]), zero, "images")
    for combiner in (MAX, MIN):
        put(combiner, cast("f32", [1, 2, nan, 3, -inf, inf, 0, 1]), window([2]), note="NaN wins")
    for name in ("f32", "f64", "bf16"):
        x = random(name, (5, 9), 9)
        put(ADD, x, window([2, 5], padding=[(1, 1), (2, 2)]),
            within("n roundings of the sum of the magnitudes", 1,
                   10 * eps("f64" if name == "f64" else "f32") * 10 * 3))


def elements(position, c, shape):
    """Yields the elements under a window, in row-major order."""
    for tap in itertools.product(*map(range, c["size"])):
        at = [o * s + k * d - p[0] for o, s, k, d, p in
              zip(position, c["stride"], tap, c["dilation"], c["padding"])]
        if all(a % b == 0 and 0 <= a // b < n for a, b, n in zip(at, c["base"], shape)):
            yield tuple(a // b for a, b in zip(at, c["base"]))


def selected(x, position, c, keep):
    """Applies StableHLO's select: an element replaces the selected one unless `keep` keeps that."""
    found = None
    for e in elements(position, c, x.shape):
        if found is None or not keep(x[found], x[e]):
            found = e
    return found


def selecting_cases(w):
    keeps = (np.greater_equal, np.less_equal)

    def put(x, c, direction, seed, note=""):
        name = name_of(x)
        shape = reduce_window_of(MAX, x, c).shape
        source = small(name, shape, seed)
        sums, taken = np.zeros(x.shape, wide(x).dtype), np.zeros(shape, wide(x).dtype)
        values = random(name, x.shape, seed + 1)
        for position in np.ndindex(shape):
            at = selected(wide(x), position, c, keeps[direction])
            if at is not None:
                sums[at] += wide(source)[position]
                taken[position] = wide(values)[at]
        zero = UNSIGNED_ZERO if name in FLOATS else EXACT
        attrs = [direction, *flat(c)]
        w.case("select_and_scatter", [x, source], cast(name, sums), attrs, zero, note)
        w.case("select_and_gather", [x, values], cast(name, taken), attrs, note=note)

    for direction in (0, 1):
        for name in NUMBERS:
            put(small(name, (6,), 1), window([2], [2]), direction, 2)
            put(small(name, (4, 5), 3), window([2, 3], [1, 2]), direction, 4, "overlapping windows")
        x = random("f32", (5, 6), 5)
        put(x, window([3, 2], [2, 2], [(1, 1), (0, 1)]), direction, 6, "padding")
        put(x, window([2, 2], dilation=[2, 3]), direction, 7, "window dilation")
        put(x, window([2, 3], base=[2, 2]), direction, 8, "base dilation")
        put(np.zeros((2, 3), np.float32), window([2, 2]), direction, 9, "ties: the first")
        put(x, window([1, 1]), direction, 10, "every element")
        put(small("f32", (3,), 11), window([4]), direction, 12, "no window")
        put(cast("f32", [1, nan, 2, 0, 3, nan]), window([3], [3]), direction, 13,
            "NaN is never kept and never keeps")
        put(small("f32", (2, 4, 4, 2), 14), window([1, 2, 2, 1], [1, 2, 2, 1]), direction, 15,
            "images")
    # The derivative of max pooling is a select_and_scatter; JAX agrees with the loop above.
    x, c = random("f32", (5, 6), 16), window([3, 2], [2, 2], [(1, 1), (0, 1)])
    pool = lambda v: jax.lax.reduce_window(v, -inf, jax.lax.max, c["size"], c["stride"], c["padding"])
    y, pull = jax.vjp(pool, x)
    source = small("f32", y.shape, 17)
    w.case("select_and_scatter", [x, source], np.asarray(pull(source)[0]), [0, *flat(c)],
           UNSIGNED_ZERO, "the derivative of jax.lax.reduce_window")


def cumsum_cases(w):
    def put(x, dim, reverse=0, exclusive=0, bound=EXACT, note=""):
        v = wide(x)
        if reverse:
            v = np.flip(v, dim)
        with np.errstate(all="ignore"):
            y = np.cumsum(v, dim, dtype=v.dtype)
        if exclusive:
            y = np.roll(y, 1, dim)
            y[(slice(None),) * dim + (slice(0, 1),)] = 0
        if reverse:
            y = np.flip(y, dim)
        w.case("cumsum", [x], cast(name_of(x), y), [dim, reverse, exclusive], bound, note)

    for name in NUMBERS:
        for reverse in (0, 1):
            for exclusive in (0, 1):
                put(small(name, (3, 5), 1), 1, reverse, exclusive,
                    UNSIGNED_ZERO if name in FLOATS else EXACT)
        if name in INTEGERS:
            put(random(name, (9,), 2), 0, note="wraps")
    for shape, dim in (((4, 3), 0), ((2, 3, 4), 1), ((0, 3), 0), ((3, 0), 0), ((1,), 0), ((2, 1), 1)):
        put(small("f32", shape, 3), dim, bound=UNSIGNED_ZERO)
        put(small("f32", shape, 3), dim, 1, 1, bound=UNSIGNED_ZERO)
    put(cast("f32", [1, inf, 2, -inf, 3, nan]), 0, note="infinities and NaN")
    put(np.ones((300,), DTYPES["bf16"]), 0, note="a sum in bf16 would stop at 256")
    for name in ("f32", "f64", "f16"):
        x = random(name, (53,), 4)
        put(x, 0, bound=within("n roundings of the sum of the magnitudes", 1,
                               53 * eps("f64" if name == "f64" else "f32") *
                               float(np.abs(wide(x)).sum())))


def convolution_cases(w):
    def put(lhs, rhs, dims, stride=None, padding=None, base=None, dilation=None, reversal=None,
            groups=1, batch_groups=1, real=False, note=""):
        """dims: batch, feature, spatial... of lhs; input feature, output feature, spatial... of rhs;
        batch, feature, spatial... of the result."""
        l, r, o = dims
        n = len(l) - 2
        name = name_of(lhs)
        stride, base, dilation = (list(v or [1] * n) for v in (stride, base, dilation))
        padding, reversal = padding or [(0, 0)] * n, reversal or [0] * n
        flipped = np.flip(wide(rhs), [r[2 + d] for d in range(n) if reversal[d]])
        numbers = jax.lax.ConvDimensionNumbers(tuple(l), (r[1], r[0], *r[2:]), tuple(o))

        def convolve(a, b):
            return np.asarray(jax.lax.conv_general_dilated(
                a.astype(np.float64), b.astype(np.float64), stride, padding, base, dilation,
                dimension_numbers=numbers, feature_group_count=groups,
                batch_group_count=batch_groups, precision=jax.lax.Precision.HIGHEST))

        y = convolve(wide(lhs), flipped)
        bound = UNSIGNED_ZERO if name in FLOATS else EXACT
        if real:
            magnitudes = convolve(np.abs(wide(lhs)), np.abs(flipped))
            count = rhs.size // rhs.shape[r[1]]
            bound = within("n products and sums, each rounded", 1,
                           (count + 1) * eps("f64" if name == "f64" else "f32") *
                           float(magnitudes.max()))
        attrs = [*l, *r, *o, *stride, *base, *dilation, *(p[0] for p in padding),
                 *(p[1] for p in padding), *reversal, int(groups != 1), batch_groups]
        w.case("convolution", [lhs, rhs], cast(name, y), attrs, bound, note)

    ncw = [0, 1, 2], [1, 0, 2], [0, 1, 2]
    nwc = [0, 2, 1], [1, 2, 0], [0, 2, 1]
    nhwc = [0, 3, 1, 2], [2, 3, 0, 1], [0, 3, 1, 2]
    for name in NUMBERS:
        put(small(name, (2, 3, 5), 1), small(name, (4, 3, 2), 2), ncw)
        put(small(name, (1, 4, 5, 2), 3), small(name, (3, 2, 2, 3), 4), nhwc, [2, 1],
            [(1, 1), (0, 1)], note="images")
    s = small
    put(s("f32", (2, 7, 3), 5), s("f32", (3, 3, 4), 6), nwc, [2], [(2, 1)])
    put(s("f32", (2, 7, 3), 5), s("f32", (3, 3, 4), 6), nwc, dilation=[2], note="window dilation")
    put(s("f32", (2, 4, 3), 5), s("f32", (3, 3, 4), 6), nwc, padding=[(2, 2)], base=[3],
        note="base dilation: a transposed convolution")
    put(s("f32", (2, 7, 3), 5), s("f32", (3, 3, 4), 6), nwc, reversal=[1], note="reversed")
    put(s("f32", (2, 7, 3), 5), s("f32", (3, 3, 4), 6), nwc, padding=[(-1, -2)],
        note="negative padding")
    put(s("f32", (2, 5, 6, 2), 7), s("f32", (3, 2, 2, 3), 8), nhwc, [2, 1], [(1, 2), (0, 1)],
        [1, 2], [2, 1], [0, 1], note="all of it")
    put(s("f32", (2, 6, 5), 9), s("f32", (4, 3, 2), 10), ncw, groups=2, note="feature groups")
    put(s("f32", (2, 6, 5), 9), s("f32", (6, 1, 2), 10), ncw, groups=6, note="depthwise")
    put(s("f32", (6, 3, 5), 11), s("f32", (4, 3, 2), 12), ncw, batch_groups=2, note="batch groups")
    put(s("f32", (2, 3), 13), s("f32", (4, 3), 14), ([0, 1], [1, 0], [0, 1]),
        note="no spatial dimension: a matrix product")
    put(s("f32", (5, 2, 3, 4), 15), s("f32", (2, 3, 2, 3), 16),
        ([3, 1, 0, 2], [0, 3, 2, 1], [2, 0, 3, 1]), note="dimensions in any order")
    put(s("f32", (1, 1, 2, 3, 2), 17), s("f32", (1, 1, 2, 2, 1), 18),
        ([0, 1, 2, 3, 4], [1, 0, 2, 3, 4], [0, 1, 2, 3, 4]), note="three spatial dimensions")
    put(s("f32", (1, 1, 2), 19), s("f32", (1, 1, 3), 20), ncw, padding=[(4, 4)],
        note="windows without an element")
    put(s("f32", (0, 2, 4), 21), s("f32", (3, 2, 2), 22), ncw, note="an empty batch")
    put(s("f32", (2, 2, 4), 23), s("f32", (0, 2, 2), 24), ncw, note="no output feature")
    put(s("f32", (1, 2, 3), 25), s("f32", (2, 2, 4), 26), ncw, note="a window that does not fit")
    put(random("f32", (2, 9, 9, 5), 27), random("f32", (3, 3, 5, 4), 28), nhwc, padding=[(1, 1)] * 2,
        real=True, note="any values")
    put(random("f64", (2, 5, 13), 29), random("f64", (3, 5, 4), 30), ncw, real=True,
        note="any values")
    put(random("bf16", (1, 5, 13), 31), random("bf16", (3, 5, 4), 32), ncw, real=True,
        note="any values")


def main():
    w = Writer("windows")
    for cases in (reduce_cases, reduce_window_cases, selecting_cases, cumsum_cases,
                  convolution_cases):
        cases(w)
    w.write()
