"""Checks functions with regions from JAX to XLA: reads, evaluates and writes each, and runs it by XLA.

    python regions.py WRITE_MODULES     the program write_modules

The results of our evaluation must equal those of JAX, and the results of XLA on the modules that we write (the global
one, and for two devices) must equal those of our evaluation. Regions are those of reduce by any function,
reduce_window, sort, scatter, select_and_scatter, while and case; elements are negative, NaN, and zeros of both signs,
so that an initial value that is not an identity is detected. Exit status 77: JAX is missing, and nothing was run.
"""
import os
import subprocess
import sys
import tempfile

import run_modules  # sets flags, and exits without JAX
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", False)  # JAX's default
INF = np.inf


def greater(a, b):
    return jnp.where(a > b, a, b)


def least_and_greatest(a, b):
    return jnp.minimum(a[0], b[0]), jnp.maximum(a[1], b[1])


def tensorflow_argmax(a, b):
    """Argmax as TensorFlow writes it: another comparison selects the position."""
    better, equal = a[0] >= b[0], a[0] == b[0]
    first = jnp.where(equal, jnp.minimum(a[1], b[1]), jnp.where(better, a[1], b[1]))
    return jnp.where(better, a[0], b[0]), first


def jax_argmax(a, b):
    wins = (a[0] > b[0]) | (a[0] != a[0])
    first = wins | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(wins, a[0], b[0]), jnp.where(first, a[1], b[1])


def argmax_without_nan(a, b):
    wins = a[0] > b[0]
    first = wins | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(wins, a[0], b[0]), jnp.where(first, a[1], b[1])


def join_moments(a, b):
    """Combines (count, mean, sum of squared differences) of two samples."""
    n, d = a[0] + b[0], b[1] - a[1]
    m = jnp.where(n == 0, 1., n)
    return n, a[1] + d * b[0] / m, a[2] + b[2] + d * d * a[0] * b[0] / m


def positions(x, start=0):
    return lax.broadcasted_iota(jnp.int32, x.shape, 1) + start


def reduce_to(f, init, *dims):
    return lambda x: lax.reduce(x, np.float32(init), f, dims)


def argmax_from(f, value, position, start=0):
    return lambda x: lax.reduce((x, positions(x, start)), (np.float32(value), np.int32(position)), f, (1,))


def with_special(x):
    """Replaces some elements by zeros and NaNs of both signs, and infinities."""
    special = jnp.asarray(np.array([0., -0., np.nan, np.copysign(np.nan, -1), INF, -INF], np.float32))
    return x.at[:, :6].set(jnp.broadcast_to(special, (x.shape[0], 6)))


def top_of_quotients(x):
    y = jnp.floor(x)
    zero = jnp.where(positions(x) % 3 == 0, y - y, y)
    return lax.top_k(zero / zero, 4)


X, N = "x", "n"  # negative floats, negative integers
FUNCTIONS = {
    "log_add": (reduce_to(jnp.logaddexp, -INF, 0), X),
    "log_add_all": (reduce_to(jnp.logaddexp, -INF, 0, 1), X),
    "greatest": (reduce_to(greater, -INF, 1), X),
    "greatest_of_many": (lambda x: lax.reduce(jnp.tile(x, (1, 300)), np.float32(-INF), greater, (1,)), X),
    "greatest_from_number": (reduce_to(greater, -2., 0), X),
    "sum_from_number": (reduce_to(lambda a, b: a + b * np.float32(1) + np.float32(0), 5., 1), X),
    "from_value": (lambda x: lax.reduce(x, x[0, 0], greater, (1,)), X),
    "maximum_from_value": (lambda x: lax.reduce(x, x[0, 0], lax.max, (1,)), X),
    "least_and_greatest": (lambda x: lax.reduce((x, x), (np.float32(INF), np.float32(-INF)), least_and_greatest, (1,)), X),
    "tensorflow_argmax": (argmax_from(tensorflow_argmax, -INF, 0), X),
    "tensorflow_argmax_from_number": (argmax_from(tensorflow_argmax, -1., 0), X),
    "argmax": (argmax_from(jax_argmax, -INF, 0), X),
    "argmax_from_number": (argmax_from(jax_argmax, -1., 77), X),
    "argmax_of_others": (argmax_from(jax_argmax, -INF, 0, 3), X),
    "argmax_without_nan": (argmax_from(argmax_without_nan, -INF, 0), X),
    "argmax_special": (lambda x: (jnp.argmax(with_special(x), 1), jnp.argmin(with_special(x), 1)), X),
    # Along the unsharded dimension, since XLA's all_reduce of a minimum loses NaN on CPUs.
    "extremes_special": (lambda x: (jnp.max(with_special(x), 1), jnp.min(with_special(x), 1),
                                    lax.cummax(with_special(x), 1), lax.cummin(with_special(x), 1)), X),
    "moments": (lambda x: lax.reduce((jnp.ones_like(x), x, jnp.zeros_like(x)), (np.float32(0),) * 3, join_moments, (0,)), X),
    "of_nothing": (lambda x: (lax.reduce(x[:, :0], np.float32(-7), greater, (1,)), lax.reduce(x[:, :0], x[0, 0], greater, (1,)),
                              argmax_from(jax_argmax, -3., 7)(x[:, :0])), X),
    "of_integers": (lambda n: lax.reduce(n, np.int32(-100), greater, (0,)), N),
    "exclusive_or": (lambda n: (lax.reduce(n, np.int32(0), lambda a, b: a ^ b, (0,)),
                                lax.reduce(n > -3, False, lambda a, b: a ^ b, (1,))), N),
    "halves": (lambda x: [lax.reduce(x.astype(t), np.array(-INF, t), greater, (1,)).astype(jnp.float32)
                          for t in (jnp.bfloat16, jnp.float16)], X),
    "windows": (lambda x: (lax.reduce_window(x, np.float32(-INF), greater, (2, 3), (1, 1), "SAME"),
                           lax.reduce_window(x, -INF, lax.max, (2, 3), (2, 1), "VALID"),
                           lax.reduce_window(x, np.float32(-INF), jnp.logaddexp, (1, 3), (1, 1), "VALID")), X),
    "windows_of_two": (lambda x: lax.reduce_window((x, x), (np.float32(INF), np.float32(-INF)), least_and_greatest,
                                                   (1, 3), (1, 2), "SAME"), X),
    "scatters": (lambda x: (x.at[jnp.array([0, 0, 2])].max(x[1:4]), x.at[jnp.array([1, 3])].min(x[:2]),
                            x.at[jnp.array([1, 1])].mul(x[:2]), x.at[0].set(x[1]), x.at[jnp.array([2, 2])].add(x[:2]),
                            x.at[jnp.array([0, 1])].apply(jnp.tanh)), X),
    "selects": (lambda x: jax.grad(lambda y: (lax.reduce_window(y, -INF, lax.max, (2, 2), (2, 2), "VALID")
                                              * x[:2, :6]).sum())(x), X),
    "sorts": (lambda x: (lax.sort(with_special(x)), *lax.sort((jnp.round(x), x, positions(x)), num_keys=2),
                         jnp.argsort(with_special(x), descending=True)), X),
    "top": (lambda x: (*lax.top_k(with_special(x), 9), *lax.top_k(x.astype(jnp.bfloat16), 3)[1:]), X),
    "top_of_quotients": (top_of_quotients, X),
    "top_approximately": (lambda x: lax.approx_max_k(with_special(x), 5), X),
    "loops": (lambda x: (lax.while_loop(lambda c: c[0].sum() > -5000., lambda c: (c[0] * 1.5, c[1] + 1), (x, 0)),
                         lax.scan(lambda c, a: (c * 0.5 + a, c - a), x[0], x), lax.map(lambda r: r @ r, x),
                         lax.fori_loop(0, 5, lambda i, c: c + jnp.sin(x[i % 4]), x[0])), X),
    "branches": (lambda n: (lax.switch(jnp.clip(n[0, 0] + 5, 0, 2), [lambda z: z * 2, lambda z: -z, abs], n),
                            lax.cond(n[0, 1] < 0, jnp.negative, lambda z: z + 1, n)), N),
    "running": (lambda x: (lax.cumsum(x, 1), lax.cumlogsumexp(x, 0), lax.cummax(x, 1, reverse=True),
                           lax.associative_scan(greater, x, axis=1)), X),
}


def main(write_modules):
    random = np.random.default_rng(48)
    given = {X: -np.abs(random.normal(size=(4, 12)) * 2 + 0.5).astype(np.float32),
             N: random.integers(-9, -1, (4, 12)).astype(np.int32)}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        read, written = folder + "/read", folder + "/written"
        os.mkdir(read), os.mkdir(written)
        expected = {}
        for name, (f, kind) in FUNCTIONS.items():
            f = jax.jit(f)
            with open(f"{read}/{name}.mlir", "w") as file:
                file.write(f.lower(given[kind]).as_text())
            np.savez(f"{read}/{name}.npz", a0=given[kind])
            expected[name] = [np.asarray(r) for r in jax.tree.leaves(f(given[kind]))]
        status = subprocess.run([write_modules, written, "modules", read]).returncode
        for name, results in expected.items():
            if not os.path.exists(f"{written}/{name}.npz"):
                print(f"{name}: was not written")
                bad += 1
                continue
            ours = np.load(f"{written}/{name}.npz")
            for i, jaxs in enumerate(results):
                fault = run_modules.differs(ours[f"r{i}"], jaxs)
                if fault:
                    bad += 1
                    print(f"{name}: result {i}: {fault}: {ours[f'r{i}'].ravel()[:6]}, JAX gives {jaxs.ravel()[:6]}")
        jax.config.update("jax_enable_x64", True)
        status |= run_modules.check_all(written)
    print(f"{len(FUNCTIONS)} functions, {bad} results differ from JAX's")
    return 1 if bad or status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
