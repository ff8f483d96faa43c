"""Compares functions in JAX, read from every text form that JAX prints, with the results of JAX.

    PARTITA=build/examples/partita python read_functions.py [NAME | models]...

Each function is printed by jax.jit(f).lower, by jax.export, and both again in the generic form. Ops that JAX does not
print are included here as text, which XLA runs. `partita --run` evaluates each text. Integers must be equal. The
difference of floating-point numbers, relative to the maximum of the result (at least 1), must be below 1e-5 (for f16
and bf16 below 1e-2, for f64 below 1e-12). NaN, infinities and signs of zero must match those of JAX. `models` checks
that the public models (bench/jax_models.py) at small size are the same program in both forms. Exit status 77: JAX is
missing.
"""
import os
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export, lax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
except ImportError as e:
    print(f"skipped: {e}; cmake/test.cmake makes an environment with jax")
    sys.exit(77)

random = np.random.default_rng(0)


def f32(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.1, 9, size=shape).astype(np.float32)


def i32(*shape, low=-9, high=9):
    return random.integers(low, high, size=shape).astype(np.int32)


X, Y, W, I = f32(6, 8), f32(6, 8), f32(8, 5), i32(6, 8)
SPECIAL = np.array([1, -0.0, np.nan, 0.0, -np.inf, 2, np.inf, -3, 1], np.float32)


# ---- Functions ---------------------------------------------------------------------------------

def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / np.sqrt(8.0), axis=-1) @ v


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(1, 2))


def scaled_sum(x, s):
    return lax.reduce(x, np.float32(1), lambda a, b: a + b - 0.25 * a * b, (1,)) * s


def by_case(x, i):
    return lax.switch(i, [jnp.sin, lambda y: y * 3, lambda y: y[::-1]], x)


def scanned(x, w):
    def step(h, row):
        h = jnp.tanh(h + row @ w)
        return h, h.sum()
    return lax.scan(step, jnp.zeros(5, np.float32), x)


def sorted_in_loop(x):
    return lax.fori_loop(0, 3, lambda i, y: jnp.sort(y, axis=1)[:, ::-1] + i, x)


def scatter_by(x, i, u):
    return x.at[i].apply(jnp.tanh), x.at[i].multiply(u), x.at[i].max(u), x.at[i].min(u)


def pooled(x):
    return (lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "SAME"),
            lax.reduce_window(x, 0., lambda a, b: a + b + 0.5 * a * b, (1, 3), (1, 1), "VALID"))


def dropped(x):
    return jnp.where(jax.random.bernoulli(jax.random.PRNGKey(3), 0.7, x.shape), x / 0.7, 0)


def looped(x):
    return lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 2, c[1] * 1.1 + c[0]), (0, x))


def checkpointed(x, w):
    return jax.grad(lambda x, w: jax.checkpoint(lambda a: jnp.sin(a @ w))(x).sum(), (0, 1))(x, w)


FUNCTIONS = {
    "add": (lambda x, y: x + 2 * y, X, Y),
    "approximate_top_k": (lambda x: lax.approx_max_k(x, 3), X),
    "argmax": (lambda x: (x.argmax(1), x.argmin(0)), X),
    "argsort": (lambda x: (jnp.argsort(x), jnp.argsort(x, descending=True)), X),
    "attention": (attention, X, Y, f32(6, 8)),
    "bessel": (lambda x: (lax.bessel_i0e(x), lax.bessel_i1e(x)), X * 5),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (6, 3, 8)), X),
    "case": (by_case, X, np.int32(2)),
    "checkpoint": (checkpointed, X, W),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(6)), X),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), X),
    "compare": (lambda x, y: (x < y, x == y, (x > 0) & (y > 0)), X, Y),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), X, Y),
    "cond": (lambda p, x: lax.cond(p, jnp.cos, lambda y: y - 1, x), np.True_, X),
    "convolution": (convolved, f32(2, 3, 8, 9), f32(4, 3, 3, 2)),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1)), X),
    "dot_general": (lambda x, y: jnp.einsum("abc,adc->abd", x, y), f32(3, 4, 5), f32(3, 2, 5)),
    "dropout": (dropped, X),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 2), (3, 4)), X, np.int32(2)),
    "dynamic_update": (lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :3], (i, i)), X, Y, np.int32(4)),
    "erf": (lambda x: (lax.erf(x), lax.erfc(x), lax.erf_inv(x / 4)), X),
    "exp": (lambda x: (jnp.exp(x), jnp.expm1(x), jnp.log1p(x * x), jnp.logaddexp(x, 1.0)), X),
    "fft_free": (lambda x: jnp.linalg.norm(x, axis=1), X),
    "floor": (lambda x: (jnp.floor(x), jnp.round(x), jnp.sign(x), x % 0.7), X),
    "gather": (lambda x, i: x[i, 2], X, i32(4, low=0, high=6)),
    "gelu": (lambda x: jax.nn.gelu(x), X),
    "grad": (jax.grad(lambda w, x: jnp.square(jnp.tanh(x @ w)).mean()), W, X),
    "group_norm": (lambda x: (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5), X),
    "hyperbolic": (lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arctan(x)), X),
    "integers": (lambda i: (i // 3, i % 4, i & 5, i << 1, lax.population_count(i)), I),
    "iota": (lambda x: x + jnp.arange(8), X),
    "lgamma": (lambda x: (lax.lgamma(x), lax.digamma(x)), positive(5)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), X),
    "map": (lambda x: lax.map(lambda r: jnp.sort(r) * 2, x), X),
    "median": (lambda x: jnp.median(x, axis=1), X),
    "one_hot": (lambda i: jax.nn.one_hot(i, 7), i32(5, low=-1, high=7)),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=3.5), X),
    "percentile": (lambda x: jnp.percentile(x, 30.0, axis=0), X),
    "polygamma": (lambda x: lax.polygamma(np.array([1, 2, 3, 0], np.float32), x), positive(4)),
    "pool": (pooled, X),
    "prod": (lambda x: (x.prod(1), x.max(), x.min(0), (x > 0).all(1), (x > 0).any(0)), X),
    "ragged_dot": (lambda x, y, s: lax.ragged_dot(x, y, s), f32(7, 4), f32(3, 4, 5), np.array([2, 0, 4], np.int32)),
    "random": (lambda k: (jax.random.normal(k, (7,)), jax.random.randint(k, (5,), 0, 9),
                          jax.random.permutation(k, 6)), jax.random.PRNGKey(0)),
    "reduce": (lambda x: lax.reduce(x, -np.inf, jnp.logaddexp, (0,)), X),
    "reduce_by": (scaled_sum, X, np.float32(2)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 7), X),
    "reverse": (lambda x: x[::-1, ::2], X),
    "roll": (lambda x: jnp.roll(x, 3, 1), X),
    "scan": (scanned, f32(4, 8), W),
    "scatter": (scatter_by, X, i32(4, low=0, high=6), f32(4, 8)),
    "scatter_add": (lambda x, i, u: x.at[i, 1].add(u), X, i32(4, low=0, high=6), f32(4)),
    "select_and_scatter": (jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID").sum()), X),
    "softplus": (lambda x: (jax.nn.softplus(x), jax.nn.silu(x), jax.nn.elu(x)), X),
    "sort": (lambda x: jnp.sort(x), X),
    "sort_descending": (lambda x: jnp.sort(x, descending=True, axis=0), X),
    "sort_f16": (lambda x: jnp.sort(x.astype(np.float16)), X),
    "sort_in_loop": (sorted_in_loop, X),
    "sort_pairs": (lambda x, i: lax.sort((i, x), num_keys=2), X, I),
    "sort_special": (lambda x: jnp.sort(x), SPECIAL),
    "sort_several": (lambda x, y, i: lax.sort((x, i, y), num_keys=1), X, Y, I),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i, 1), X, i32(6, 3, low=0, high=8)),
    "top_k": (lambda x: lax.top_k(x, 3), X),
    "triangular": (lambda x, y: jax.scipy.linalg.solve_triangular(x[:, :6] + 9 * jnp.eye(6), y, lower=True), X, Y),
    "unique": (lambda i: jnp.unique(i, size=9, fill_value=0), I),
    "vmap": (lambda x, y: jax.vmap(jnp.dot)(x, y), X, Y),
    "where": (lambda x: jnp.where(x > 0, x, 0.1 * x), X),
    "while": (looped, X),
    "zeta": (lambda x, q: lax.zeta(x, q), positive(9) + 1, positive(9)),
}

# ---- Texts -------------------------------------------------------------------------------------

def text_of(body, results, *types):
    """Returns a module with a function whose arguments %a, %b, ... have these types."""
    arguments = ", ".join(f"%{'abcde'[i]}: {'tensor<' + t + '>'}" for i, t in enumerate(types))
    to = ", ".join(f"tensor<{t}>" for t in results.split())
    return f"func.func @main({arguments}) -> ({to}) {{\n{body}\n}}\n"


def one(op, to, *types):
    """Returns a module with one op, given its name and, after a space, its attributes."""
    name, _, attributes = op.partition(" ")
    given = ", ".join(f"%{'abcde'[i]}" for i in range(len(types)))
    kinds = ", ".join(f"tensor<{t}>" for t in types)
    made = ", ".join(f"tensor<{t}>" for t in to.split())
    count = len(to.split())
    results = ", ".join(f"%0#{i}" for i in range(count)) if count > 1 else "%0"
    many = f":{count}" if count > 1 else ""
    return text_of(f'  %0{many} = "{name}"({given}) {attributes} : ({kinds}) -> ({made})\n  return {results} : {made}',
                   to, *types)


NORM = "<{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>"
Z, F = f32(4, 3, 5), f32(3)
RAGGED = "<{ragged_dot_dimension_numbers = #chlo.ragged_dot<%s>}>"
SIZES = np.array([2, 0, 4], np.int32)
COMPARED = "#chlo<comparison_direction LT>"


def with_region(op, attributes, region, to, *types):
    """Returns a module with an op whose region uses %s, twice the constant 0.25, and %z, which is 0."""
    kinds = ", ".join(f"tensor<{t}>" for t in types)
    given = ", ".join(f"%{'abcde'[i]}" for i in range(len(types)))
    return (f"  %q = stablehlo.constant dense<2.500000e-01> : tensor<f32>\n"
            f"  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
            f"  %s = stablehlo.add %q, %q : tensor<f32>\n"
            f'  %0 = "stablehlo.{op}"({given}) <{{{attributes}}}> ({{\n{region}\n  }}) : ({kinds}) -> tensor<{to}>\n'
            f"  return %0 : tensor<{to}>")


# a + b + s a b is associative: 1 + s f(a, b) = (1 + s a) (1 + s b)
GROWN = """  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.multiply %x, %y : tensor<f32>
    %2 = stablehlo.multiply %1, SCALAR : tensor<f32>
    %3 = stablehlo.add %x, %y : tensor<f32>
    %4 = stablehlo.add %3, %2 : tensor<f32>
    stablehlo.return %4 : tensor<f32>"""
BEFORE = """  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.subtract %x, %y : tensor<f32>
    %2 = stablehlo.compare LT, %1, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>"""
NEARER = """  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.subtract %x, SCALAR : tensor<f32>
    %2 = stablehlo.abs %1 : tensor<f32>
    %3 = stablehlo.subtract %y, SCALAR : tensor<f32>
    %4 = stablehlo.abs %3 : tensor<f32>
    %5 = stablehlo.compare GT, %4, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>"""
WINDOW = "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>"
ROWS = ("indices_are_sorted = false, unique_indices = false, scatter_dimension_numbers = #stablehlo.scatter<"
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")


def captured(op, attributes, region, to, *types):
    """Returns a module with an op whose region uses a scalar computed from a constant outside."""
    return text_of(with_region(op, attributes, region.replace("SCALAR", "%s"), to, *types), to, *types)


TEXTS = {
    "batch_norm_grad": (one("stablehlo.batch_norm_grad " + NORM, "4x3x5xf32 3xf32 3xf32", "4x3x5xf32", "3xf32", "3xf32",
                            "3xf32", "4x3x5xf32"), Z, F, f32(3), positive(3), f32(4, 3, 5)),
    "batch_norm_inference": (one("stablehlo.batch_norm_inference " + NORM, "4x3x5xf32", "4x3x5xf32", "3xf32", "3xf32",
                                 "3xf32", "3xf32"), Z, F, f32(3), f32(3), positive(3)),
    "batch_norm_training": (one("stablehlo.batch_norm_training " + NORM, "4x3x5xf32 3xf32 3xf32", "4x3x5xf32", "3xf32",
                                "3xf32"), Z, F, f32(3)),
    "bessel": (one("chlo.bessel_i1e", "24xf32", "24xf32"), np.linspace(-30, 30, 24).astype(np.float32)),
    "bessel_f64": (one("chlo.bessel_i1e", "24xf64", "24xf64"), np.linspace(-30, 30, 24)),
    "bessel_f16": (one("chlo.bessel_i1e", "24xf16", "24xf16"), np.linspace(-30, 30, 24).astype(np.float16)),
    "broadcast_dims": (one("stablehlo.broadcast_in_dim <{broadcast_dimensions = array<i64: 2, 0>}>", "5x2x4xf32",
                           "4x5xf32"), f32(4, 5)),
    "captured_map": (captured("map", "dimensions = array<i64: 0, 1>", GROWN, "6x8xf32", "6x8xf32", "6x8xf32"), X, Y),
    "captured_reduce": (captured("reduce", "dimensions = array<i64: 1>", GROWN, "6xf32", "6x8xf32", "f32"), X,
                        np.float32(0)),
    "captured_scatter": (captured("scatter", ROWS, GROWN, "6x8xf32", "6x8xf32", "3x1xi32", "3x8xf32"), X,
                         np.array([[4], [0], [4]], np.int32), f32(3, 8)),
    "captured_sort": (captured("sort", "dimension = 1 : i64, is_stable = true", BEFORE, "6x8xf32", "6x8xf32"), X),
    "captured_sort_key": (captured("sort", "dimension = 0 : i64, is_stable = true", NEARER, "6x8xf32", "6x8xf32"), X),
    "captured_window": (captured("reduce_window", WINDOW, GROWN, "6x3xf32", "6x8xf32", "f32"), X, np.float32(0)),
    "chlo_broadcast_add": (one("chlo.broadcast_add", "6x8xf32", "6x8xf32", "8xf32"), X, f32(8)),
    "chlo_broadcast_compare": (one(f"chlo.broadcast_compare {{comparison_direction = {COMPARED}}}", "6x8xi1", "6x1xf32",
                                   "1x8xf32"), f32(6, 1), f32(1, 8)),
    "chlo_broadcast_polygamma": (one("chlo.broadcast_polygamma", "4xf32", "f32", "4xf32"), np.float32(2), positive(4)),
    "chlo_broadcast_scalar": (one("chlo.broadcast_subtract", "6x8xf32", "f32", "6x8xf32"), np.float32(2), X),
    "chlo_broadcast_select": (one("chlo.broadcast_select", "6x8xf32", "6x1xi1", "8xf32", "6x8xf32"), f32(6, 1) > 0,
                              f32(8), X),
    "einsum": (one('stablehlo.einsum {einsum_config = "abc,cbd->dba"}', "2x4x3xf32", "3x4x5xf32", "5x4x2xf32"),
               f32(3, 4, 5), f32(5, 4, 2)),
    "einsum_dots": (one('stablehlo.einsum {einsum_config = "...ab,bc->...ca"}', "2x5x4xf32", "2x4x3xf32", "3x5xf32"),
                    f32(2, 4, 3), f32(3, 5)),
    "get_dimension_size": (one("stablehlo.get_dimension_size <{dimension = 1 : i64}>", "i32", "6x8xf32"), X),
    "index_select": (one("stablehlo.torch_index_select {batch_dims = 0 : i64, dim = 1 : i64}", "6x3x4x5xf32", "6x8x5xf32",
                         "3x4xi32"), f32(6, 8, 5), i32(3, 4, low=0, high=8)),
    "index_select_batch": (one("stablehlo.torch_index_select {batch_dims = 1 : i64, dim = 2 : i64}", "6x8x3xf32",
                               "6x8x5xf32", "6x3xi32"), f32(6, 8, 5), i32(6, 3, low=0, high=5)),
    "map": (one("stablehlo.map <{dimensions = array<i64: 0>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                "%1 = stablehlo.power %x, %y : tensor<f32>\nstablehlo.return %1 : tensor<f32>\n})", "9xf32", "9xf32",
                "9xf32"), positive(9), f32(9)),
    "polygamma": (one("chlo.polygamma", "7xf64", "7xf64", "7xf64"), np.array([0., 1, 2, 3, 4, 1.5, -1]),
                  positive(7).astype(np.float64)),
    "tuple": (text_of("  %0 = stablehlo.tuple %a, %b : tuple<tensor<6x8xf32>, tensor<6xf32>>\n"
                      "  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<6x8xf32>, tensor<6xf32>>) -> "
                      "tensor<6xf32>\n  return %1 : tensor<6xf32>", "6xf32", "6x8xf32", "6xf32"), X, f32(6)),
    "zeta": (one("chlo.zeta", "9xf64", "9xf64", "9xf64"), np.array([1.5, 2, 3, 1, 0.5, 2, 3, 2.5, 40]),
             np.array([0.1, 1, 7.5, 2, 2, -1, -2, -0.5, 1.5])),
}


def folded(x, s):
    return ((1 + s * x).prod(1) - 1) / s


def with_scalar(op, attributes, region, to, *types):
    """Returns a module with an op whose region uses the last argument."""
    last = "%" + "abcde"[len(types)]
    return text_of(with_region(op, attributes, region.replace("SCALAR", last), to, *types), to, *types, "f32")


def scattered(x, i, u, s):
    for row, update in zip(i[:, 0], u):
        x = x.copy()
        x[row] += update + s * x[row] * update
    return x


def windows(x, first, s):
    return np.stack([folded(np.concatenate([x[:, j:j + 3]], 1), s) for j in (0, 2, 4)], 1)


def ragged(*dimensions):
    return lambda x, y, sizes: np.asarray(lax.ragged_dot_general(x, y, sizes, lax.RaggedDotDimensionNumbers(*dimensions)))


HALF = np.float32(0.5)
# Texts that XLA does not run: regions that capture values other than constants, ragged products, and dimensions by
# number. Each entry has a text, its meaning, and arguments.
MEANT = {
    "scalar_map": (with_scalar("map", "dimensions = array<i64: 0, 1>", GROWN, "6x8xf32", "6x8xf32", "6x8xf32"),
                   lambda x, y, s: x + y + s * x * y, X, Y, HALF),
    "scalar_reduce": (with_scalar("reduce", "dimensions = array<i64: 1>", GROWN, "6xf32", "6x8xf32", "f32"),
                      lambda x, first, s: folded(x, s), X, np.float32(0), HALF),
    "scalar_scatter": (with_scalar("scatter", ROWS, GROWN, "6x8xf32", "6x8xf32", "3x1xi32", "3x8xf32"), scattered, X,
                       np.array([[4], [0], [4]], np.int32), f32(3, 8), HALF),
    "scalar_sort": (with_scalar("sort", "dimension = 1 : i64, is_stable = true", NEARER, "6x8xf32", "6x8xf32"),
                    lambda x, s: np.take_along_axis(x, np.argsort(np.abs(x - s), 1, kind="stable"), 1), X, HALF),
    "scalar_window": (with_scalar("reduce_window", WINDOW, GROWN, "6x3xf32", "6x8xf32", "f32"), windows, X,
                      np.float32(0), HALF),
    "chlo_broadcast_dims": (one("chlo.broadcast_multiply {broadcast_dimensions = array<i64: 0>}", "6x8xf32", "6xf32",
                                "6x8xf32"), lambda x, y: x[:, None] * y, f32(6), X),
    "ragged_batch": (one("chlo.ragged_dot " + RAGGED % ("lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
                         "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = "
                         "[0]"), "7x3x5xf32", "7x3x4xf32", "7x4x5xf32", "3xi32"),
                     ragged((([2], [1]), ([0], [0])), [0], []), f32(7, 3, 4), f32(7, 4, 5), SIZES),
    "ragged_columns": (one("chlo.ragged_dot " + RAGGED % ("lhs_contracting_dimensions = [0], rhs_contracting_dimensions "
                           "= [0], lhs_ragged_dimensions = [0]"), "3x4x5xf32", "7x4xf32", "7x5xf32", "3xi32"),
                       ragged((([0], [0]), ([], [])), [0], []), f32(7, 4), f32(7, 5), SIZES),
    "ragged_rows": (one("chlo.ragged_dot " + RAGGED % ("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = "
                        "[1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]"), "7x5xf32", "7x4xf32",
                        "3x4x5xf32", "3xi32"),
                    ragged((([1], [1]), ([], [])), [0], [0]), f32(7, 4), f32(3, 4, 5), SIZES),
    "ragged_rows_of_batch": (one("chlo.ragged_dot " + RAGGED % ("lhs_batching_dimensions = [0], rhs_batching_dimensions "
                                 "= [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], "
                                 "lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]"), "2x7x5xf32", "2x7x4xf32",
                                 "3x2x4x5xf32", "2x3xi32"),
                             ragged((([2], [2]), ([0], [1])), [1], [0]), f32(2, 7, 4), f32(3, 2, 4, 5),
                             np.array([[2, 0, 4], [1, 5, 1]], np.int32)),
    "unary_einsum": (one('stablehlo.unary_einsum {einsum_config = "abc->ca"}', "5x3xf32", "3x4x5xf32"),
                     lambda x: x.sum(1).T, f32(3, 4, 5)),
}


# ---- Running -----------------------------------------------------------------------------------

def context():
    made = mlir.make_ir_context()
    made.allow_unregistered_dialects = True
    return made


def generic(text, locations=False):
    with context():
        return ir.Module.parse(text).operation.get_asm(print_generic_op_form=True, enable_debug_info=locations)


def by_xla(text, arguments):
    device = jax.devices()[0]
    with mlir.make_ir_context():
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        run = device.client.compile_and_load(ir.Module.parse(text), _jax.DeviceList((device,)), options)
    with jax.enable_x64(True):
        given = [jax.device_put(x, device) for x in arguments]
    results = run.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.asarray(pieces[0]) for pieces in results]


def texts_of(name):
    """Returns the text of each form, the arguments and the results."""
    if name in MEANT:
        text, f, *arguments = MEANT[name]
        return {"text": text, "text, generic": generic(text)}, arguments, [f(*arguments)]
    if name in TEXTS:
        text, *arguments = TEXTS[name]
        return {"text": text, "text, generic": generic(text)}, arguments, by_xla(text, arguments)
    f, *arguments = FUNCTIONS[name]
    # Without this, constants become arguments of jit.
    jitted = jax.jit(f, keep_unused=True)
    forms = {"lower": jitted.lower(*arguments).as_text(),
             "export": export.export(jitted)(*arguments).mlir_module()}
    forms |= {form + ", generic": generic(text) for form, text in list(forms.items())}
    return forms, arguments, [np.asarray(x) for x in jax.tree.leaves(jitted(*arguments))]


def differs(made, right):
    if made.shape != right.shape or made.dtype != right.dtype:
        return f"{made.dtype}{list(made.shape)} for {right.dtype}{list(right.shape)}"
    if not np.issubdtype(right.dtype, np.floating) and right.dtype.name != "bfloat16":
        return "" if np.array_equal(made, right) else f"{made.ravel()[:9]} for {right.ravel()[:9]}"
    bound = 1e-2 if right.dtype.itemsize == 2 else 1e-5 if right.dtype.itemsize == 4 else 1e-12
    made, right = made.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(np.where(finite, 0, made), np.where(finite, 0, right), equal_nan=True):
        return f"{made.ravel()[:9]} for {right.ravel()[:9]}"
    made, right = np.where(finite, made, 0), np.where(finite, right, 0)
    worst = np.abs(made - right).max(initial=0) / np.abs(right).max(initial=1)
    return f"a difference of {worst:.1e}" if worst > bound else ""


def evaluated(folder, text, arguments):
    with open(os.path.join(folder, "m.mlir"), "w") as f:
        f.write(text)
    np.savez(os.path.join(folder, "in.npz"), **{f"a{i}": np.asarray(x) for i, x in enumerate(arguments)})
    run = subprocess.run([os.environ["PARTITA"], "m.mlir", "--run", "in.npz", "--out", "out.npz"], cwd=folder,
                         capture_output=True, text=True)
    if run.returncode != 0:
        return (run.stderr or run.stdout).strip()
    with np.load(os.path.join(folder, "out.npz")) as made:
        return [made[f"r{i}"] for i in range(len(made.files))]


def models(folder):
    """Returns the number of public models that differ in the generic form."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
    try:
        import jax_models
        for package in "flax", "haiku", "keras", "optax", "transformers":
            __import__(package)
    except ImportError as e:
        print(f"skipped: {e}; cmake/test.cmake makes an environment with what is needed")
        sys.exit(77)
    bad = 0
    for name, make in jax_models.MODELS.items():
        step, arguments, _ = make(False)
        text = jax.jit(step).lower(**arguments).as_text(debug_info=True)
        made = []
        for each in text, generic(text, True):
            with open(os.path.join(folder, "m.mlir"), "w") as f:
                f.write(each)
            run = subprocess.run([os.environ["PARTITA"], "m.mlir", "--emit", "text"], cwd=folder, capture_output=True,
                                 text=True)
            made.append(run.stdout if run.returncode == 0 else run.stderr)
        if made[0] != made[1] or not made[0].startswith("func"):
            bad += 1
            print(f"{name}: {made[0][:200]} {made[1][:200]}")
    print(f"{len(jax_models.MODELS)} models, {bad} that differ in the generic form")
    return bad


def main(wanted):
    bad = 0
    if wanted == ["models"]:
        with tempfile.TemporaryDirectory() as folder:
            return models(folder) != 0
    names = wanted or [*FUNCTIONS, *TEXTS, *MEANT]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            forms, arguments, right = texts_of(name)
            for form, text in forms.items():
                made = evaluated(folder, text, arguments)
                fault = made if isinstance(made, str) else "; ".join(filter(None, map(differs, made, right)))
                if isinstance(made, list) and len(made) != len(right):
                    fault = f"{len(made)} results for {len(right)}"
                if fault:
                    bad += 1
                    print(f"{name} ({form}): {fault[:300]}")
    print(f"{len(names)} functions, {bad} texts that differ")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
