"""Reference data for convert between all pairs of element types; floats are rounded once from exact values."""
import math

import numpy as np

from reference_data import *


def element(value, to):
    """Truncates towards zero and saturates. NaN becomes 0; conversion to i1 tests for nonzero."""
    if to in FLOATS:
        return round_to(to, value)
    if to == "i1":
        return value != 0
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return int(min(max(value, least(to)), greatest(to)))
    return int(np.array([value]).astype(DTYPES[to])[0])  # integers keep their low bits


def sources(name):
    """Returns special values, and values around the limits and the rounding ties of every other type."""
    values = awkward(name).astype(object if name not in FLOATS else np.float64).tolist()
    if name in FLOATS:
        values += [0.5, 1.5, 2.5, -0.5, -0.99, 255.0, 255.5, 256.0, -1.0, 2147483520.0, 2147483647.0,
                   2147483648.0, -2147483648.0, -2147483904.0, 9223371487098961920.0, 2.0 ** 63,
                   -2.0 ** 63, -2.0 ** 64, 1.00390625, 1.01171875, 1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11,
                   65504.0, 65519.99, 65520.0, 2.0 ** -24, 2.0 ** -25, 1.5 * 2.0 ** -25, 2.0 ** -133,
                   2.0 ** -134, 2.0 ** -149, 2.0 ** -150, 3.4028235677973366e38, 3.3961775292304957e38,
                   # near a tie of a narrow type: wrong if rounded twice
                   1.00390625 + 2.0 ** -40, 1.01171875 - 2.0 ** -40, 1 + 2.0 ** -11 + 2.0 ** -40,
                   1 + 2.0 ** -24 + 2.0 ** -50, 2.0 ** -25 + 2.0 ** -60, 65520 - 2.0 ** -30]
        return cast(name, np.array(values))
    if name != "i1":
        more = [0, 1, 127, 128, 255, 256, 257, 258, 259, 2049, 2050, 2051, 65519, 65520, 16777217,
                16777219, -257, -129, -1, 2 ** 31 - 64, 2 ** 31, 2 ** 32 + 5, 2 ** 53 + 1,
                # near ties of bf16 and f32: wrong if rounded to binary64 first
                2 ** 62 + 2 ** 54 + 1, 2 ** 62 + 2 ** 54 - 1, 2 ** 62 + 2 ** 54,
                2 ** 62 + 2 ** 38 + 1, -(2 ** 62) - 2 ** 54 - 1, 2 ** 63 - 1]
        values += [v for v in more if least(name) <= v <= greatest(name)]
    return np.array(values, DTYPES[name])


def main():
    w = Writer("convert")

    def put(x, to, note=""):
        kind = float if name_of(x) in FLOATS else int
        y = [element(kind(v), to) for v in wide(x).ravel()]
        w.case("convert", [x], np.array(y).reshape(x.shape).astype(DTYPES[to]), note=note)

    for source in DTYPES:
        for to in DTYPES:
            put(sources(source), to, f"{source} to {to}")
    put(random("f32", (0, 3)), "bf16", "nothing")
    put(random("f64", ()), "f16", "a scalar")
    put(random("i64", (1, 1)), "f64")
    put(random("f32", (3, 1, 7), high=300, low=-300), "i32")
    put(random("f32", (3, 11), high=300, low=-300), "f16")
    w.write()
