"""Reference data for add to negate, exp to rsqrt, compare, select: NumPy and SciPy, in binary64 if rounding matters."""
from fractions import Fraction

import jax
import numpy as np
from scipy import special

from reference_data import *

SHAPES = ((5,), (2, 3), (0, 4), (), (1, 1, 17))


def exact_float(op, x, y):
    """Returns add, subtract, multiply or divide, rounded once from the exact value; special values as in IEEE 754."""
    name = name_of(x)
    with np.errstate(all="ignore"):
        special_value = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
                         "divide": np.divide}[op](wide(x), wide(y))
    out = []
    for a, b, s in zip(wide(x).ravel().tolist(), wide(y).ravel().tolist(),
                       special_value.ravel().tolist()):
        plain = all(map(np.isfinite, (a, b))) and not (op == "divide" and b == 0)
        if not plain:
            out.append(s)
            continue
        fa, fb = Fraction(a), Fraction(b)
        v = {"add": lambda: fa + fb, "subtract": lambda: fa - fb, "multiply": lambda: fa * fb,
             "divide": lambda: fa / fb}[op]()
        # The sign of a zero, and of values below the range of binary64, is that of the IEEE operation.
        out.append(s if v == 0 else round_to(name, v))
        if out[-1] == 0:
            out[-1] = float(np.copysign(0.0, s))
    return np.array(out, np.float64).reshape(special_value.shape).astype(DTYPES[name])


def extremum(op, x, y):
    """Returns maximum or minimum as in IEEE 754-2019: NaN propagates, and -0 is less than 0."""
    with np.errstate(invalid="ignore"):
        out = {"maximum": np.maximum, "minimum": np.minimum}[op](wide(x), wide(y))
    if name_of(x) not in FLOATS:
        return out
    a, b = np.broadcast_arrays(wide(x), wide(y))
    zeros = (a == 0) & (b == 0)
    negative = (np.logical_and if op == "maximum" else np.logical_or)(np.signbit(a), np.signbit(b))
    return np.where(zeros, np.where(negative, -0.0, 0.0), out).astype(DTYPES[name_of(x)])


def binary(op, x, y):
    x, y = np.asarray(x), np.asarray(y)
    if op in ("maximum", "minimum"):
        return extremum(op, x, y)
    if name_of(x) in FLOATS:
        return exact_float(op, *np.broadcast_arrays(x, y))
    if op == "divide":  # division by zero, and of the minimum integer by -1, as in XLA
        x, y = np.broadcast_arrays(x, y)
        return np.asarray(jax.lax.div(x, y)) if x.size else x
    with np.errstate(over="ignore"):
        return {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[op](x, y)


def functions(op):
    return {"exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": special.erf, "sqrt": np.sqrt,
            "rsqrt": lambda x: 1 / np.sqrt(x), "negate": np.negative}[op]


def special_values(op, name):
    """Returns arguments near the limits of the function's domain and range."""
    lo, hi = least_normal(name), greatest(name)
    tiny = lo * 2 ** -5
    rows = {
        "exp": [1e-8, -1e-8, 0.5, 10, -10, np.log(hi) * 0.999, np.log(lo) * 0.999, hi, -hi],
        "log": [1, 1.0078125, 0.9921875, 2, 0.5, hi, lo, tiny, -tiny, -1, 10, 1e-3],
        "tanh": [1e-8, 1e-3, -1e-3, 0.5, -0.6, 1, 3, -5, 8, 20, -20, hi, -hi, lo, tiny],
        "erf": [1e-8, 1e-3, -1e-3, 0.5, -0.6, 1, 2, -3, 3.9, 5, -5, hi, -hi, lo],
        "sqrt": [1, 2, 4, 1e4, 0.25, hi, lo, tiny, -1, -lo],
        "rsqrt": [1, 2, 4, 1e4, 0.25, hi, lo, tiny, -1],
    }
    return cast(name, rows[op] + [0.0, -0.0, inf, -inf, nan])


def function_bound(op, name):
    if op == "negate" or op == "sqrt":
        return EXACT
    if op == "rsqrt" and name in ("f32", "f64"):
        return within("a square root and a division, each correctly rounded", 2)
    if name in ("bf16", "f16"):
        return within("computed in binary32, then rounded once", 1)
    ulps = {"exp": 2, "log": 2, "tanh": 4, "erf": 4}[op]
    return within("approximated by a polynomial or a quotient of two", ulps)


def main():
    w = Writer("elementwise")
    for op in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        for name in NUMBERS:
            x, y = pairs(name)
            if op in ("maximum", "minimum") and name in FLOATS:
                zeros = (wide(x) == 0) & (wide(y) == 0)
                w.case(op, [x[zeros], y[zeros]], binary(op, x[zeros], y[zeros]), bound=UNSIGNED_ZERO)
                x, y = x[~zeros], y[~zeros]
            w.case(op, [x, y], binary(op, x, y), note="special values, each with each")
            x, y = random(name, (23,), 1), random(name, (23,), 2)
            w.case(op, [x, y], binary(op, x, y))
        for shape in SHAPES:
            x, y = random("f32", shape, 3), random("f32", shape, 4)
            w.case(op, [x, y], binary(op, x, y))
        x, y = random("f64", (2, 3), 5), random("f64", (), 6)
        w.case(op, [x, y], binary(op, x, y), note="with a scalar")
        w.case(op, [y, x], binary(op, y, x), note="a scalar with")
        x, y = random("bf16", (0,), 5), random("bf16", (), 6)
        w.case(op, [x, y], binary(op, x, y), note="nothing with a scalar")

    for op in ("negate", "exp", "log", "tanh", "erf", "sqrt", "rsqrt"):
        f = functions(op)
        positive = op in ("log", "sqrt", "rsqrt")
        for name in NUMBERS if op == "negate" else FLOATS:
            rows = [awkward(name) if op == "negate" else special_values(op, name),
                    random(name, (37,), 7, 0.01 if positive else -4, 9 if positive else 4)]
            for x in rows:
                with np.errstate(all="ignore"):
                    y = f(wide(x))
                bound = function_bound(op, name)
                w.case(op, [x], cast(name, y), bound=bound)
            if op == "exp":
                lo = least_normal(name)
                x = cast(name, np.log([lo / 2, lo / 8, lo / 64, lo / 2 ** 20]))
                w.case(op, [x], cast(name, np.exp(wide(x))), note="denormal results",
                       bound=function_bound(op, name))
        for shape in SHAPES:
            x = random("f32", shape, 8, 0.5, 2)
            w.case(op, [x], cast("f32", f(wide(x))), bound=function_bound(op, "f32"))

    compares = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    for direction, f in enumerate(compares):
        for name in DTYPES:
            x, y = pairs(name)
            w.case("compare", [x, y], f(wide(x), wide(y)), [direction], note=f.__name__)
        for shape in SHAPES:
            x, y = small("i64", shape, 1), small("i64", shape, 2)
            w.case("compare", [x, y], f(x, y), [direction], note=f.__name__)
        x, y = small("bf16", (2, 3), 1), small("bf16", (), 2)
        w.case("compare", [x, y], f(wide(x), wide(y)), [direction], note=f.__name__ + " a scalar")

    for name in DTYPES:
        x = awkward(name)
        y, p = x[::-1].copy(), random("i1", x.shape, 3)
        w.case("select", [p, x, y], np.where(p, x, y), note="special values pass unchanged")
        w.case("select", [np.array(True), x, y], x, note="by a scalar")
        w.case("select", [p, x[0], y], np.where(p, x[0], y), note="a scalar or an element")
    for shape in SHAPES:
        p, x, y = random("i1", shape, 1), random("f32", shape, 2), random("f32", shape, 3)
        w.case("select", [p, x, y], np.where(p, x, y))
    w.write()
