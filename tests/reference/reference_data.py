"""Shared parts of the families of reference data: element types, bounds, and the file format.

A data file is text, a sequence of cases:

    case add  wraps at the ends of the type
    attrs 1 0                                   raw integers, as the IR stores them; left out if none
    operand i32[2, 2] 1 2 3 4                   one line per operand
    result i32[2, 2] 2 4 6 8                    one line per result
    bound ulp=2 abs=0x1p-20  the reason         or: bound exact

Numbers are exact: a short decimal if it equals the value, otherwise a C99 hexadecimal float, inf, nan or -nan. Tests
compare the sign of a zero, but neither sign nor payload of a NaN. An element is correct if it is within `ulp` units in
the last place of its type, or within `abs`, of the expected one.
"""
from fractions import Fraction
import math
import pathlib

import jax
import ml_dtypes
import numpy as np
import scipy

jax.config.update("jax_enable_x64", True)

DTYPES = {
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16), "u32": np.dtype(np.uint32), "u64": np.dtype(np.uint64),
    "i1": np.dtype(np.bool_),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("i32", "i64", "u8")
NUMBERS = FLOATS + INTEGERS
#: bits of the significand, exponent of the minimum normal number, maximum exponent
FORMATS = {"f32": (24, -126, 127), "f64": (53, -1022, 1023),
           "bf16": (8, -126, 127), "f16": (11, -14, 15)}

inf, nan = math.inf, math.nan


def name_of(array):
    return NAMES[np.asarray(array).dtype]


def eps(name):
    """Returns half a unit in the last place of 1, the maximum relative error of one rounding."""
    return 2.0 ** -FORMATS[name][0]


def least_normal(name):
    return 2.0 ** FORMATS[name][1]


def greatest(name):
    if name in FLOATS:
        bits, _, exponent = FORMATS[name]
        return float(2 - Fraction(2) ** (1 - bits)) * 2.0 ** exponent
    return 1 if name == "i1" else int(np.iinfo(DTYPES[name]).max)


def least(name):
    if name in FLOATS:
        return -greatest(name)
    return 0 if name == "i1" else int(np.iinfo(DTYPES[name]).min)


def round_to(name, value):
    """Rounds a number (int, float or Fraction) once, from its exact value, to nearest even in a floating-point
    type."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return value
    if value == 0:
        return math.copysign(0.0, value) if isinstance(value, float) else 0.0
    exact = Fraction(value)
    bits, lowest, highest = FORMATS[name]
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, lowest) - bits + 1)
    rounded = round(magnitude / unit) * unit  # Python rounds ties to even
    sign = -1 if exact < 0 else 1
    if rounded >= Fraction(2) ** (highest + 1):
        return sign * inf
    return math.copysign(float(rounded), sign)


def cast(name, values):
    """Returns an array of an element type; floats are rounded once from their exact values."""
    values = np.asarray(values)
    if name not in FLOATS:
        return values.astype(DTYPES[name])
    if values.dtype == DTYPES[name]:
        return values
    if values.dtype == DTYPES["bf16"]:
        values = values.astype(np.float64)
    flat = [round_to(name, v) for v in values.ravel().tolist()]
    return np.array(flat, np.float64).astype(DTYPES[name]).reshape(values.shape)


def wide(array):
    """Converts floats to binary64; returns other arrays unchanged."""
    array = np.asarray(array)
    return array.astype(np.float64) if name_of(array) in FLOATS else array


def random(name, shape, seed=0, low=-3.0, high=3.0):
    """Returns random values: floats in [low, high), integers from the full range, which often overflow."""
    rng = np.random.default_rng([seed, *shape])
    if name in FLOATS:
        return cast(name, rng.uniform(low, high, shape))
    if name == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(least(name), greatest(name), shape, DTYPES[name], endpoint=True)


def small(name, shape, seed=0, low=-4, high=4):
    """Returns small integers, for which sums and products are exact in every order."""
    rng = np.random.default_rng([seed, *shape])
    low, high = (0, 1) if name == "i1" else (0, 8) if name == "u8" else (low, high)
    return rng.integers(low, high + 1, shape).astype(DTYPES[name])


def awkward(name):
    """Returns a row of the type's special values."""
    if name == "i1":
        return np.array([False, True, True, False])
    if name not in FLOATS:
        lo, hi = least(name), greatest(name)
        return np.array([0, 1, 2, 3, 7, hi, hi - 1, hi // 2, hi // 2 + 1, lo, lo + 1, lo // 2],
                        DTYPES[name])
    tiny = Fraction(2) ** (FORMATS[name][1] - FORMATS[name][0] + 1)
    return cast(name, [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, inf, -inf, nan, greatest(name),
                       -greatest(name), least_normal(name), -least_normal(name), float(tiny),
                       -3 * float(tiny)])


def pairs(name):
    """Returns two rows with all pairs of ten special values."""
    row = awkward(name)
    if name in FLOATS:
        row = row[[0, 1, 2, 5, 6, 7, 8, 9, 11, 14]]
    elif name != "i1":
        row = row[[0, 1, 3, 4, 5, 7, 8, 9, 10, 11]]
    return np.repeat(row, len(row)), np.tile(row, len(row))


EXACT = "exact"


def within(why, ulp=0, absolute=0.0):
    parts = [f"ulp={ulp}"] if ulp else []
    if absolute:
        parts.append(f"abs={float(absolute).hex()}")
    return " ".join(parts) + "  " + why


#: a bound for sums that may start at 0, and for ties of zeros
UNSIGNED_ZERO = within("the sign of a zero is open", absolute=2.0 ** -1074)


def number(value, name):
    if name not in FLOATS:
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    if math.isinf(value):
        return str(value)
    short = f"{value:.6g}"
    if len(short) <= 10 and Fraction(short) == Fraction(value):
        return short
    mantissa, exponent = value.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


class Writer:
    """Collects the cases of one family and writes their file."""

    def __init__(self, family):
        self.family = family
        self.lines = [
            f"# Cases of the family {family}, made by tests/reference/make.py (see reference_data.py) "
            "with",
            f"# numpy {np.__version__}, scipy {scipy.__version__}, jax {jax.__version__}, "
            f"ml_dtypes {ml_dtypes.__version__}",
        ]

    def case(self, op, operands, results, attrs=(), bound=EXACT, note=""):
        """Adds a case. `results` is an array or a list of arrays."""
        if not isinstance(results, (list, tuple)):
            results = [results]
        self.lines += ["", f"case {op}  {note}".rstrip()]
        if len(attrs):
            self.lines.append("attrs " + " ".join(str(int(a)) for a in attrs))
        for kind, arrays in (("operand", operands), ("result", results)):
            for array in arrays:
                array = np.asarray(array)
                name = name_of(array)
                shape = ", ".join(str(n) for n in array.shape)
                if kind == "result" and name in FLOATS:  # the sign of a NaN is unspecified
                    array = np.where(np.isnan(wide(array)), cast(name, nan), array)
                row = " ".join(number(v, name) for v in array.ravel())
                self.lines.append(f"{kind} {name}[{shape}] {row}".rstrip())
        self.lines.append(f"bound {bound}")

    def write(self):
        path = pathlib.Path(__file__).parent / f"{self.family}.txt"
        path.write_text("\n".join(self.lines) + "\n")
        print(f"{path.name}: {sum(l.startswith('case ') for l in self.lines)} cases, "
              f"{path.stat().st_size} bytes")
