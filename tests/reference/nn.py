"""Reference data for building blocks of networks: jax.nn, jax.lax and formulas of papers, in binary64.

Cases have names; nn.cpp maps each to a function of the library. The output, nn.dat, has the format of
reference_data.py: `case NAME`, operands, results, bound.
"""
import pathlib

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from reference_data import *

#: The data have ten digits of numbers below 100.
CLOSE = "abs=1e-8  ten digits"


def draw(shape, seed, low=-2.0, high=2.0):
    # Few digits keep the data short; all are exact in binary64.
    return np.round(np.random.default_rng([seed, *shape]).uniform(low, high, shape) * 16) / 16


def case(w, name, operands, result):
    w.lines += ["", f"case {name}"]
    for kind, array in [("operand", a) for a in operands] + [("result", np.asarray(result))]:
        shape = ", ".join(str(n) for n in array.shape)
        row = " ".join(f"{v:.10g}" for v in array.ravel().astype(np.float64))
        w.lines.append(f"{kind} {name_of(array)}[{shape}] {row}")
    w.lines.append(f"bound {CLOSE}")


def rotary(x, positions, interleaved, base=10000.0):
    """Rotary embedding: Su et al., arXiv:2104.09864, equation 34."""
    k = x.shape[-1]
    angle = positions[..., None, None] * base ** (-2 * np.arange(k // 2) / k)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., :k // 2], x[..., k // 2:]
    c, s = np.cos(angle), np.sin(angle)
    turned = a * c - b * s, b * c + a * s
    if interleaved:
        return np.stack(turned, -1).reshape(x.shape)
    return np.concatenate(turned, -1)


def normalize(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


def attention(q, k, v, seen=True, scale=None):
    """Computes jax.nn.dot_product_attention in binary64; its own softmax is in binary32."""
    heads = q.shape[2] // k.shape[2]
    wide_k, wide_v = np.repeat(k, heads, 2), np.repeat(v, heads, 2)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, wide_k) * (scale or q.shape[-1] ** -0.5)
    weights = nn.softmax(jnp.where(seen, scores, -np.inf))
    result = jnp.einsum("bhqs,bshk->bqhk", weights, wide_v)
    mask = jnp.broadcast_to(jnp.asarray(seen), scores.shape)
    theirs = nn.dot_product_attention(q, k, v, mask=mask, scale=scale)
    assert jnp.abs(result - theirs).max() < 1e-6
    return result


def conv(x, w, strides, padding, dilation, groups):
    spatial = "DHW"[3 - (x.ndim - 2):]
    layout = ("N" + spatial + "C", spatial + "IO", "N" + spatial + "C")
    return lax.conv_general_dilated(x, w, strides, padding, rhs_dilation=dilation,
                                    dimension_numbers=layout, feature_group_count=groups)


def pool(x, start, combine, size, strides, padding, dilation):
    around = lambda v: (1, *v, 1)
    if not isinstance(padding, str):
        padding = ((0, 0), *padding, (0, 0))
    return lax.reduce_window(x, start, combine, around(size), around(strides), padding,
                             window_dilation=around(dilation))


def main():
    w = Writer("nn")

    def add(name, operands, result):
        case(w, name, operands, result)

    x = draw((3, 5), 1, -6, 6)
    for name, f in (("relu", nn.relu), ("sigmoid", nn.sigmoid), ("silu", nn.silu),
                    ("gelu", nn.gelu), ("gelu_erf", lambda v: nn.gelu(v, approximate=False)),
                    ("softmax", nn.softmax), ("log_softmax", nn.log_softmax),
                    ("log_sum_exp", lambda v: nn.logsumexp(v, axis=-1))):
        add(name, [x], f(x))
    a, b = draw((4, 6), 2), draw((6,), 3)
    add("linear", [x[:, :4], a, b], x[:, :4] @ a + b)
    rows = np.array([[3, 0], [1, 3]], np.int32)
    add("embedding", [a, rows], a[rows])

    x, scale, bias = draw((2, 3, 5), 4), draw((5,), 5), draw((5,), 6)
    add("layer_norm", [x, scale, bias], normalize(x, -1, 1e-5) * scale + bias)
    add("layer_norm_jax", [x], nn.standardize(x, epsilon=1e-5))
    add("rms_norm", [x, scale], x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * scale)
    x, scale, bias = draw((2, 3, 1, 4), 7), draw((4,), 25), draw((4,), 26)
    for groups in (1, 2, 4):
        y = normalize(x.reshape(2, 3, 1, groups, 4 // groups), (1, 2, 4), 1e-5).reshape(x.shape)
        add(f"group_norm_{groups}", [x, scale, bias], y * scale + bias)

    x = draw((2, 4, 1, 6), 8)
    where = np.array([[0, 5, 2, 11], [3, 1, 4, 1]], np.int32)
    for name, interleaved in (("halves", False), ("interleaved", True)):
        add(f"rotary_{name}", [x], rotary(x, np.arange(4) + 3, interleaved))
        add(f"rotary_{name}_at", [x, where], rotary(x, where, interleaved))

    for name, heads, keys in (("heads", 4, 4), ("groups", 4, 2), ("multi_query", 4, 1)):
        q, k, v = draw((2, 3, heads, 2), 9), draw((2, 4, keys, 2), 10), draw((2, 4, keys, 2), 11)
        add(f"attention_{name}", [q, k, v], attention(q, k, v))
        before = np.arange(3)[:, None] - np.arange(4)[None]
        add(f"attention_{name}_causal", [q, k, v], attention(q, k, v, before >= 0))
        add(f"attention_{name}_offset", [q, k, v], attention(q, k, v, before >= -1))
        mask = np.random.default_rng(12).integers(0, 2, (2, heads, 3, 4)).astype(np.bool_)
        mask[..., 0] = True
        add(f"attention_{name}_mask", [q, k, v, mask], attention(q, k, v, mask))
        add(f"attention_{name}_scale", [q, k, v], attention(q, k, v, scale=0.25))

    x, f, b = draw((2, 6, 3), 13), draw((3, 3, 4), 14), draw((4,), 15)
    add("conv_1d", [x, f, b], conv(x, f, (1,), "VALID", (1,), 1) + b)
    x, f, b = draw((1, 5, 4, 4), 16), draw((3, 2, 2, 4), 17), draw((4,), 18)
    add("conv_2d", [x, f, b], conv(x, f, (2, 1), "SAME", (1, 2), 2) + b)
    add("conv_2d_padded", [x, f], conv(x, f, (1, 2), ((1, 0), (2, 1)), (1, 1), 2))
    x, f, b = draw((1, 3, 4, 3, 2), 19), draw((2, 2, 2, 2, 2), 20), draw((2,), 21)
    add("conv_3d", [x, f, b], conv(x, f, (1, 2, 1), "SAME", (2, 1, 1), 1) + b)

    x = draw((1, 5, 6, 2), 22)
    same = ((2, 3), (2, 2), "SAME", (1, 1))
    given = ((2, 2), (1, 2), ((1, 0), (0, 1)), (2, 1))
    ones = np.ones_like(x)
    add("max_pool", [x], pool(x, -np.inf, lax.max, *same))
    add("max_pool_dilated", [x], pool(x, -np.inf, lax.max, *given))
    add("avg_pool", [x], pool(x, 0.0, lax.add, *same) / pool(ones, 0.0, lax.add, *same))
    add("avg_pool_dilated", [x], pool(x, 0.0, lax.add, *given) / pool(ones, 0.0, lax.add, *given))
    add("avg_pool_counted", [x], pool(x, 0.0, lax.add, *same) / 6)
    add("avg_pool_valid", [x], pool(x, 0.0, lax.add, (2, 3), (1, 1), "VALID", (1, 1)) / 6)

    x = draw((2, 3, 5), 23, -4, 4)
    targets = np.array([[4, 0, 2], [2, 2, 1]], np.int32)
    labels = nn.one_hot(targets, 5, dtype=np.float64)
    add("cross_entropy", [x, targets], -(labels * nn.log_softmax(x)).sum(-1).mean())
    smooth = labels * 0.9 + 0.1 / 5
    add("cross_entropy_options", [x, targets],
         -(smooth * nn.log_softmax(x)).sum(-1).mean()
         + 0.01 * (nn.logsumexp(x, axis=-1) ** 2).mean())
    t = draw((2, 3, 5), 24, 0, 1)
    p = nn.sigmoid(x)
    add("binary_cross_entropy", [x, t], -(t * jnp.log(p) + (1 - t) * jnp.log(1 - p)).mean())
    add("mean_squared_error", [x, t], ((x - t) ** 2).mean())
    (pathlib.Path(__file__).parent / "nn.dat").write_text("\n".join(w.lines) + "\n")
