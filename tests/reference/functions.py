"""Reference data for remainder, clamp, abs to round_nearest_even, expm1, log1p, logistic, power, cbrt, sine to atan2
and is_finite: NumPy and SciPy in binary64, rounded once."""
import math

import numpy as np
from scipy import special

from elementwise import SHAPES, extremum
from reference_data import *


def few_ulp(name, ulps):
    if name in ("bf16", "f16"):
        return within("computed in binary32, then rounded once", 1)
    return within("approximated, or libm's", ulps)


def special_values(op, name):
    lo, hi = least_normal(name), greatest(name)
    tiny = lo * 2 ** -5
    pi = math.pi
    rows = {
        "expm1": [1e-8, -1e-8, 1e-4, -1e-4, 0.5, -0.5, 10, -10, -30, np.log(hi) * 0.999, hi, -hi, lo,
                  tiny],
        "log1p": [1e-8, -1e-8, 1e-4, -1e-4, 0.5, -0.5, 10, -1, -0.99, -2, hi, lo, tiny],
        "logistic": [1e-8, 0.5, -0.5, 5, -5, 17, -17, 40, -40, np.log(lo) * 0.999, hi, -hi, lo],
        "cbrt": [1, 8, -27, 1e4, 0.1, -0.3, hi, -hi, lo, tiny, -tiny],
        "sine": [1e-8, 1, -1, pi / 2, pi, -pi, 2 * pi, 100 * pi, 1e4, -1e4, 1e5, hi, lo, tiny],
        "cosine": [1e-8, 1, -1, pi / 2, -pi / 2, pi, 101 * pi / 2, 1e4, 1e5, hi, lo, tiny],
        "tan": [1e-8, 1, -1, pi / 2, -pi / 2, pi, 1e4, -1e4, 1e5, hi, lo, tiny],
    }
    return cast(name, rows[op] + [0.0, -0.0, inf, -inf, nan])


def integer_power(x, y, name):
    """Returns x^y. The product wraps; for a negative exponent the result is 1 / x^-y, truncated."""
    if y < 0:
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)
    return pow(x, y, 2 ** (8 * DTYPES[name].itemsize))


def wrapped(values, name):
    bits = 8 * DTYPES[name].itemsize
    signed = least(name) < 0
    values = [v % 2 ** bits for v in values]
    if signed:
        values = [v - 2 ** bits if v >= 2 ** (bits - 1) else v for v in values]
    return np.array(values, DTYPES[name])


def main():
    w = Writer("functions")

    for op, f in (("expm1", np.expm1), ("log1p", np.log1p), ("logistic", special.expit),
                  ("cbrt", np.cbrt), ("sine", np.sin), ("cosine", np.cos), ("tan", np.tan)):
        for name in FLOATS:
            low, high = (-0.9, 9) if op == "log1p" else (-4, 4)
            for x in (special_values(op, name), random(name, (37,), 7, low, high)):
                with np.errstate(all="ignore"):
                    w.case(op, [x], cast(name, f(wide(x))), bound=few_ulp(name, 4))
        for shape in SHAPES:
            x = random("f32", shape, 8, -0.5, 2)
            w.case(op, [x], cast("f32", f(wide(x))), bound=few_ulp("f32", 4))

    for op, f in (("floor", np.floor), ("ceil", np.ceil), ("round_nearest_even", np.rint)):
        for name in FLOATS:
            x = np.concatenate([awkward(name),
                                cast(name, [0.5, 1.5, 2.5, -0.5, -1.5, 0.49, -0.49, 1.0078125, 127.5,
                                            2047.5, 8388607.5, 8388608.5, -4194303.5])])
            w.case(op, [x], cast(name, f(wide(x))))
            x = random(name, (17,), 9, -9, 9)
            w.case(op, [x], cast(name, f(wide(x))))
    for op, f in (("abs", np.abs), ("sign", np.sign)):
        for name in NUMBERS:
            x = awkward(name)
            with np.errstate(all="ignore"):
                y = cast(name, f(wide(x)))
            if op == "sign" and name in FLOATS:  # the sign of a zero is the zero itself
                y = np.where(wide(x) == 0, x, y)
            w.case(op, [x], y)
        for shape in SHAPES:
            x = random("f32", shape, 10)
            w.case(op, [x], f(x))
    for name in FLOATS:
        for x in (awkward(name), random(name, (2, 3), 11), awkward(name)[6:9].reshape(3, 1)):
            w.case("is_finite", [x], np.isfinite(wide(x)))

    for name in NUMBERS:
        for x, y in (pairs(name), (random(name, (19,), 1), random(name, (19,), 2, 0.3, 2))):
            if name in FLOATS:
                with np.errstate(all="ignore"):
                    w.case("remainder", [x, y], cast(name, np.fmod(wide(x), wide(y))))
                    w.case("power", [x, y], cast(name, np.power(wide(x), wide(y))),
                           bound=few_ulp(name, 4))
                    w.case("atan2", [x, y], cast(name, np.arctan2(wide(x), wide(y))),
                           bound=few_ulp(name, 4)) if name in FLOATS else None
            else:
                both = list(zip(x.tolist(), y.tolist()))
                rest = [a if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1) for a, b in both]
                w.case("remainder", [x, y], wrapped(rest, name))
                w.case("power", [x, y], wrapped([integer_power(a, b, name) for a, b in both], name))
        row = awkward(name)
        x = row[~((wide(row) == 0) & np.signbit(wide(row)))] if name in FLOATS else row
        for low, high in ((-2, 2), (0.5, 0.25), (1, 1)) if name in FLOATS else ((1, 7), (3, 2)):
            low, high = cast(name, low), cast(name, high)
            y = extremum("minimum", extremum("maximum", x, low), high)
            w.case("clamp", [low, x, high], y, note="between scalars")
        lows, highs = random(name, x.shape, 3), random(name, x.shape, 4)
        w.case("clamp", [lows, x, highs],
               extremum("minimum", extremum("maximum", x, lows), highs))
    for x in ([-2.0, 0.5, 3.0], [nan, 0.5, 1.0], [0.5, nan, 1.0], [0.0, 0.5, nan]):
        low, v, high = cast("f32", x)
        y = extremum("minimum", extremum("maximum", v, low), high)
        w.case("clamp", [low, v, high], y, note="rank 0")
    for x, y in ((-8.0, 3.0), (2.0, 0.5), (0.0, 0.0), (-1.0, inf), (1.0, nan)):
        x, y = cast("f64", x), cast("f64", y)
        with np.errstate(all="ignore"):
            w.case("power", [x, y], np.power(x, y), bound=few_ulp("f64", 4))
            w.case("remainder", [x, y], np.fmod(x, y))
            w.case("atan2", [x, y], np.arctan2(x, y), bound=few_ulp("f64", 4))

    x, y = np.repeat([False, True], 2), np.tile([False, True], 2)
    for op, f in (("add", np.logical_or), ("multiply", np.logical_and), ("maximum", np.logical_or),
                  ("minimum", np.logical_and)):
        w.case(op, [x, y], f(x, y), note="of i1")
    w.write()
