"""Reference data for and, or, xor, not, popcnt, shifts and random_bits: NumPy, and Threefry of JAX."""
import jax.extend
import numpy as np

from functions import wrapped
from reference_data import *


def shift(op, x, by, name):
    width = 8 * DTYPES[name].itemsize
    unsigned = x % 2 ** width
    if op == "shift_left":
        return unsigned << by if 0 <= by < width else 0
    if op == "shift_right_logical":
        return unsigned >> by if 0 <= by < width else 0
    negative = unsigned >> (width - 1)
    by = by if 0 <= by < width else width
    return (unsigned - (2 ** width if negative else 0)) >> by


def halves(x):
    x = np.asarray(x).astype(np.uint64)
    return (x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32)


def random_bits(key, counter):
    """Computes one block of Threefry per pair, as JAX does."""
    key, counter = np.broadcast_arrays(key, counter)
    out = np.zeros(key.shape, np.int64)
    for i in np.ndindex(key.shape):
        pair = np.array(halves(key[i])), np.array(halves(counter[i]))
        high, low = np.asarray(jax.extend.random.threefry_2x32(*pair)).astype(np.uint64)
        out[i] = ((high << np.uint64(32)) | low).astype(np.int64)
    return out


def main():
    w = Writer("bits")
    for name in (*INTEGERS, "i1"):
        x, y = pairs(name)
        for op, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
            w.case(op, [x, y], f(x, y))
            x2, y2 = random(name, (2, 3), 1), random(name, (), 2)
            w.case(op, [x2, y2], f(x2, y2), note="with a scalar")
            w.case(op, [x2[:0], x2[:0]], x2[:0], note="empty")
        for x in (awkward(name), random(name, (3, 5), 3), random(name, (), 4), awkward(name)[:0]):
            w.case("not", [x], np.bitwise_not(x))
            if name != "i1":
                w.case("popcnt", [x], np.bitwise_count(x.view(f"u{x.itemsize}")).astype(x.dtype))
        if name == "i1":
            continue
        width = 8 * DTYPES[name].itemsize
        amounts = [0, 1, 2, width // 2, width - 1, width, width + 1, greatest(name)]
        amounts += [-1, least(name)] if least(name) < 0 else []
        x = np.repeat(awkward(name), len(amounts))
        by = np.tile(np.array(amounts, DTYPES[name]), len(awkward(name)))
        for op in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
            y = wrapped([shift(op, a, b, name) for a, b in zip(x.tolist(), by.tolist())], name)
            w.case(op, [x, by], y, note="every amount")
            a, b = random(name, (2, 3), 5), np.array(3, DTYPES[name])
            y = wrapped([shift(op, v, 3, name) for v in a.ravel().tolist()], name)
            w.case(op, [a, b], y.reshape(2, 3), note="by a scalar")

    for key, counter in ((np.int64(0), np.arange(8)), (np.int64(42), np.arange(6).reshape(2, 3)),
                         (random("i64", (5,), 6), random("i64", (5,), 7)),
                         (np.int64(-1), np.array([-1, 0, 2 ** 32, 2 ** 32 - 1, -2 ** 63])),
                         (np.arange(4), np.int64(7)), (np.int64(1), np.int64(2)),
                         (np.int64(3), np.zeros((0, 2), np.int64))):
        w.case("random_bits", [key, counter], random_bits(key, counter), note="Threefry-2x32-20")
    w.write()
