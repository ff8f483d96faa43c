"""Reference data for literal, bitcast_convert, count_leading_zeros, reduce_precision, round_nearest_away, erfc,
erf_inv, lgamma and digamma: JAX, and SciPy in binary64, rounded once."""
import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from functions import few_ulp
from reference_data import *

ALL_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def bits_of(x):
    """Returns the attributes of a literal: binary64 bits, or integers (u64 as the int64 of the same bits)."""
    if name_of(x) in FLOATS:
        return wide(x).view(np.int64).ravel().tolist()
    return x.astype(np.int64).ravel().tolist()


def special_functions(w):
    ends = {
        "erfc": [1e-8, 0.5, -0.5, 1, -1, 3, -3, 5, 10, 26, inf, -inf],
        "erf_inv": [1e-8, -1e-8, 0.25, -0.5, 0.75, 0.9375, -0.96875, 1 - 2.0 ** -8, 1, -1, 1.5, -inf],
        "lgamma": [1e-8, 0.5, 1, 1.5, 2, 3, 10, 100, 3000, 1e-30, 0.0, -0.5, -1, -1.5, inf],
        "digamma": [1e-8, 0.5, 1, 1.5, 2, 3, 10, 100, 3000, -0.5, -1, -1.5, inf],
    }
    functions = {"erfc": special.erfc, "erf_inv": special.erfinv, "lgamma": special.gammaln,
                 "digamma": special.digamma}
    for op, f in functions.items():
        low, high = {"erfc": (-4, 6), "erf_inv": (-1, 1)}.get(op, (0.1, 12))
        for name in FLOATS:
            for x in (cast(name, ends[op] + [nan]), random(name, (37,), 7, low, high)):
                with np.errstate(all="ignore"):
                    y = f(wide(x))
                if op == "digamma":  # at 0 SciPy returns infinity, XLA NaN
                    y = np.where((wide(x) <= 0) & (np.floor(wide(x)) == wide(x)), nan, y)
                bound = few_ulp(name, 32 if op == "erfc" else 4)  # SciPy's own error in the tail is large
                if op in ("lgamma", "digamma"):
                    bound = within("near its zeros", 4, 10 * 2 * eps(name))
                w.case(op, [x], cast(name, y), bound=bound)


def main():
    w = Writer("formats")
    for name in (*FLOATS, *ALL_INTEGERS, "i1"):
        x = awkward(name)
        x = x[~np.isnan(wide(x))] if name in FLOATS else x
        for y in (x, x[:4].reshape(2, 2), x[:3].reshape(1, 3, 1), x[1], x[:0]):
            w.case("literal", [], y, attrs=bits_of(np.asarray(y)))

    for source in (*FLOATS, *ALL_INTEGERS):
        for target in (*FLOATS, *ALL_INTEGERS):
            have, want = DTYPES[source].itemsize, DTYPES[target].itemsize
            shape = (3, 2) if have >= want else (3, want // have)
            x = random(source, shape, 5)
            y = np.asarray(jax.lax.bitcast_convert_type(jnp.asarray(x), DTYPES[target]))
            if target in FLOATS and (np.isnan(wide(y)).any()):
                x = cast(source, np.ones(shape)) if source in FLOATS else np.ones(shape, DTYPES[source])
                y = np.asarray(jax.lax.bitcast_convert_type(jnp.asarray(x), DTYPES[target]))
            w.case("bitcast_convert", [x], y)

    for name in ALL_INTEGERS:
        for x in (awkward(name), random(name, (3, 5), 3), random(name, (), 4), awkward(name)[:0]):
            w.case("count_leading_zeros", [x], np.asarray(jax.lax.clz(jnp.asarray(x))))

    for name in FLOATS:
        halves = cast(name, [0.5, -0.5, 1.5, 2.5, -2.5, 0.375, 3.75, 1e4, 0.0, -0.0, inf, -inf, nan])
        for x in (halves, awkward(name), random(name, (3, 5), 3)):
            away = np.asarray(jax.lax.round(jnp.asarray(x), jax.lax.RoundingMethod.AWAY_FROM_ZERO))
            w.case("round_nearest_away", [x], away)
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (11, 52), (2, 1), (8, 1)):
            for x in (awkward(name), random(name, (37,), 6, -300, 300), random(name, (19,), 7, -1, 1)):
                y = jax.lax.reduce_precision(jnp.asarray(x), exponent, mantissa)
                w.case("reduce_precision", [x], np.asarray(y), attrs=(exponent, mantissa))
    special_functions(w)
    w.write()
