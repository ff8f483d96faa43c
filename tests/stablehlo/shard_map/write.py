"""Writes the modules of this folder: functions on one device, and hand-written versions for a mesh (jax.shard_map).

    python write.py        (jax 0.10.2; NAME.source.mlir, NAME.local.mlir)

tests/stablehlo/prove.cpp proves that each local module computes its source, or finds that it does not.
"""
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

devices = np.array(jax.devices())
m42, m8 = Mesh(devices.reshape(4, 2), ("B", "M")), Mesh(devices, ("R",))
here = Path(__file__).parent


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def write(name, source, local, *arguments):
    (here / f"{name}.source.mlir").write_text(jax.jit(source).lower(*arguments).as_text())
    (here / f"{name}.local.mlir").write_text(jax.jit(local).lower(*arguments).as_text())


def on(mesh, inputs, outputs, **options):
    return lambda f: jax.shard_map(f, mesh=mesh, in_specs=inputs, out_specs=outputs, **options)


# ---- Megatron: a training step ----------------------------------------------------------------

def mlp_loss(p, x, y):
    return jnp.mean((jax.nn.gelu(x @ p["w1"]) @ p["w2"] - y) ** 2)


def descend(loss):
    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), value
    return step


def megatron_loss(p, x, y):
    z = lax.psum(jax.nn.gelu(x @ p["w1"]) @ p["w2"], "M")
    return lax.pmean(jnp.mean((z - y) ** 2), "B")


def unreduced_loss(p, x, y):  # wrong: the gradients of the batch's shards are not summed
    z = lax.psum(jax.nn.gelu(x @ p["w1"]) @ p["w2"], "M")
    return jnp.mean((z - y) ** 2)


weights = {"w1": P(None, "M"), "w2": P("M", None)}
batch = (weights, P("B", None), P("B", None))
mlp_arguments = ({"w1": f32(32, 64), "w2": f32(64, 32)}, f32(16, 32), f32(16, 32))
write("megatron", descend(mlp_loss), on(m42, batch, (weights, P()))(descend(megatron_loss)), *mlp_arguments)
write("megatron_unreduced", descend(mlp_loss),
      on(m42, batch, (weights, P()), check_vma=False)(descend(unreduced_loss)), *mlp_arguments)
write("megatron_wrong_axis", lambda x, w1, w2: jax.nn.relu(x @ w1) @ w2,
      on(m42, (P("B", None), P(None, "M"), P("M", None)), P("B", None), check_vma=False)(
          lambda x, w1, w2: lax.psum(jax.nn.relu(x @ w1) @ w2, "B")),
      f32(16, 32), f32(32, 64), f32(64, 32))

# ---- Ring attention ----------------------------------------------------------------------------

around = [(i, (i + 1) % 8) for i in range(8)]
rows = (P("R", None),) * 3


def attention(q, k, v):
    e = jnp.exp(q @ k.T)
    return (e @ v) / e.sum(-1, keepdims=True)


def ring(steps):
    def f(q, k, v):
        def body(i, c):
            o, l, k, v = c
            e = jnp.exp(q @ k.T)
            k_next, v_next = lax.ppermute(k, "R", around), lax.ppermute(v, "R", around)
            return o + e @ v, l + e.sum(-1, keepdims=True), k_next, v_next
        zeros = lax.pcast(jnp.zeros((q.shape[0], 1)), "R", to="varying")
        o, l, _, _ = lax.fori_loop(0, steps, body, (jnp.zeros_like(q), zeros, k, v))
        return o / l
    return f


def online_ring(q, k, v):  # a stable softmax: each step rescales the sums so far
    def body(i, c):
        o, l, m, k, v = c
        s = q @ k.T
        top = jnp.maximum(m, s.max(-1, keepdims=True))
        e, again = jnp.exp(s - top), jnp.exp(m - top)
        k_next, v_next = lax.ppermute(k, "R", around), lax.ppermute(v, "R", around)
        return o * again + e @ v, l * again + e.sum(-1, keepdims=True), top, k_next, v_next
    column = lambda x: lax.pcast(jnp.full((q.shape[0], 1), x), "R", to="varying")
    o, l, _, _, _ = lax.fori_loop(0, 8, body, (jnp.zeros_like(q), column(0.0), column(-jnp.inf), k, v))
    return o / l


write("ring", attention, on(m8, rows, P("R", None))(ring(8)), *(f32(32, 16),) * 3)
write("ring_a_step_short", attention, on(m8, rows, P("R", None))(ring(7)), *(f32(32, 16),) * 3)
write("ring_online", attention, on(m8, rows, P("R", None))(online_ring), *(f32(32, 16),) * 3)

# ---- ZeRO and data parallelism ------------------------------------------------------------------

def tanh_loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def momentum_step(w, m, x, y):
    value, g = jax.value_and_grad(tanh_loss)(w, x, y)
    m = 0.9 * m + g
    return w - 0.1 * m, m, value


def zero(reduce):
    def step(w, m, x, y):
        full = lax.all_gather(w, "R", axis=0, tiled=True)
        value, g = jax.value_and_grad(tanh_loss)(full, x, y)
        m = 0.9 * m + reduce(g)
        return w - 0.1 * m, m, lax.pmean(value, "R")
    return step


def data_parallel(reduce):
    def step(w, m, x, y):
        value, g = jax.value_and_grad(tanh_loss)(w, x, y)
        m = 0.9 * m + reduce(g)
        return w - 0.1 * m, m, lax.pmean(value, "R")
    return step


scattered = lambda g: lax.psum_scatter(g, "R", scatter_dimension=0, tiled=True) / 8
row, whole = P("R", None), P(None, None)
momentum_arguments = (f32(32, 64), f32(32, 64), f32(16, 32), f32(16, 64))
for name, reduce in ("zero", scattered), ("zero_reduced_twice", lambda g: scattered(lax.psum(g, "R"))):
    write(name, momentum_step, on(m8, (row,) * 4, (row, row, P()), check_vma=False)(zero(reduce)), *momentum_arguments)
for name, reduce in ("data_parallel", lambda g: lax.pmean(g, "R")), ("data_parallel_sum", lambda g: lax.psum(g, "R")):
    write(name, momentum_step, on(m8, (whole, whole, row, row), (P(), P(), P()), check_vma=False)(data_parallel(reduce)),
          *momentum_arguments)


def adam_step(w, m, v, x):
    g = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def adam_of_rows(w, m, v, x):  # each device updates its rows of w
    g = lax.pmean(jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w), "R")
    n = m.shape[0]
    mine = lambda a: lax.dynamic_slice_in_dim(a, lax.axis_index("R") * n, n)
    g, rows = mine(g), mine(w)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return lax.all_gather(rows - 1e-3 * m / (jnp.sqrt(v) + 1e-8), "R", tiled=True), m, v


write("adam_of_rows", adam_step, on(m8, (P(), P("R"), P("R"), P("R")), (P(), P("R"), P("R")), check_vma=False)(adam_of_rows),
      f32(32, 8), f32(32, 8), f32(32, 8), f32(16, 32))

# ---- The derivative of a hand-written computation: several computations, and ops between them ------

cut_loss = on(m42, (P(None, "M"), P("B", None)), P())(
    lambda w, x: lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), ("B", "M")))
write("derivative", lambda w, x: jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w),
      lambda w, x: jax.value_and_grad(cut_loss)(w, x), f32(32, 64), f32(16, 32))

# ---- All-to-alls --------------------------------------------------------------------------------

def heads(q, k, v):
    s = jnp.einsum("shd,thd->hst", q, k)
    return jnp.einsum("hst,thd->shd", jax.nn.softmax(s, axis=-1), v)


def ulysses(q, k, v):
    to_heads = lambda x: lax.all_to_all(x, "R", split_axis=1, concat_axis=0, tiled=True)
    return lax.all_to_all(heads(to_heads(q), to_heads(k), to_heads(v)), "R", split_axis=0, concat_axis=1, tiled=True)


def experts(x, w):  # x: a group of rows per pair of device and expert
    n, c, d = x.shape
    return jnp.einsum("gecd,edf->gecf", x.reshape(8, 8, c, d), w).reshape(n, c, -1)


def local_experts(x, w):
    exchange = lambda x: lax.all_to_all(x, "R", split_axis=0, concat_axis=0, tiled=True)
    return exchange(jnp.einsum("gcd,edf->gcf", exchange(x), w))


write("ulysses", heads, on(m8, (P("R"),) * 3, P("R"))(ulysses), *(f32(16, 8, 4),) * 3)
write("experts", experts, on(m8, (P("R"),) * 2, P("R"))(local_experts), f32(64, 4, 8), f32(8, 8, 16))

# ---- Sequence parallelism -----------------------------------------------------------------------

def normalized(x, g):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g


def block(x, g, w1, w2):
    return x + jax.nn.relu(normalized(x, g) @ w1) @ w2


def sequence(x, g, w1, w2):
    n = lax.all_gather(normalized(x, g), "R", axis=0, tiled=True)
    return x + lax.psum_scatter(jax.nn.relu(n @ w1) @ w2, "R", scatter_dimension=0, tiled=True)


write("sequence", block, on(m8, (row, P(), P(None, "R"), row), row)(sequence),
      f32(32, 16), f32(16), f32(16, 64), f32(64, 16))

# ---- Some axes manual, the others automatic; positions ------------------------------------------

write("centered", lambda x: x - x.mean(0, keepdims=True),
      on(m42, (P("B", None),), P("B", None), axis_names={"B"})(
          lambda x: x - lax.pmean(x.mean(0, keepdims=True), "B")), f32(16, 32))
write("positions", lambda x: x + jnp.arange(16)[:, None].astype(jnp.float32),
      on(m42, (P(("B", "M"), None),), P(("B", "M"), None))(
          lambda x: x + (lax.axis_index(("B", "M")) * 2 + jnp.arange(2))[:, None].astype(jnp.float32)),
      f32(16, 32))

# ---- Statistics of a batch ------------------------------------------------------------------------

def batch_norm(x, g):
    return (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5) * g


def local_batch_norm(variance):
    def f(x, g):
        mean = lax.pmean(x.mean(0), "R")
        return (x - mean) * lax.rsqrt(variance(x, mean) + 1e-5) * g
    return f


for name, variance in (("batch_norm", lambda x, mean: lax.pmean(((x - mean) ** 2).mean(0), "R")),
                       ("batch_norm_of_pieces", lambda x, mean: lax.pmean(x.var(0), "R"))):
    write(name, batch_norm, on(m8, (row, P()), row)(local_batch_norm(variance)), f32(32, 8), f32(8))

# ---- A sharded vocabulary: embedding and cross entropy --------------------------------------------

def piece_of(ids, rows):  # positions in the device's shard; other ids are clipped to the shard and masked
    local = ids - lax.axis_index("R") * rows
    return (local >= 0) & (local < rows), jnp.clip(local, 0, rows - 1)


def local_embedding(masked):
    def f(table, ids):
        here, local = piece_of(jnp.clip(ids, 0, 63), table.shape[0])
        return lax.psum(jnp.where(here[..., None], table[local], 0) if masked else table[local], "R")
    return f


def cross_entropy(x, w, y):
    z = x @ w
    top = z.max(-1)
    picked = jnp.take_along_axis(z, jnp.clip(y, 0, 63)[:, None], axis=-1)[:, 0]
    return (jnp.log(jnp.exp(z - top[:, None]).sum(-1)) + top - picked).mean()


def local_cross_entropy(summed):
    def f(x, w, y):
        z = x @ w
        top = lax.pmax(z.max(-1), "R")
        here, local = piece_of(jnp.clip(y, 0, 63), z.shape[-1])
        picked = jnp.where(here, jnp.take_along_axis(z, local[:, None], axis=-1)[:, 0], 0.0)
        return (jnp.log(summed(jnp.exp(z - top[:, None]).sum(-1))) + top - lax.psum(picked, "R")).mean()
    return f


def i32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


over_all = lambda x: lax.psum(x, "R")
for name, masked in ("vocabulary", True), ("vocabulary_unmasked", False):
    write(name, lambda table, ids: table[jnp.clip(ids, 0, 63)], on(m8, (row, P()), P())(local_embedding(masked)),
          f32(64, 8), i32(4, 6))
for name, summed in ("cross_entropy", over_all), ("cross_entropy_of_pieces", lambda x: x):
    write(name, cross_entropy, on(m8, (P(), P(None, "R"), P()), P(), check_vma=False)(local_cross_entropy(summed)),
          f32(16, 8), f32(8, 64), i32(16))

# ---- Groups along sub-axes, and nested computations -----------------------------------------------

halves, pairs, across = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]
for name, second in ("in_two_steps", across), ("in_two_steps_that_overlap", pairs):
    write(name, lambda x: jnp.tanh(x.sum(0)), on(m8, (row,), P(), check_vma=False)(
        lambda x: jnp.tanh(lax.psum(lax.psum(x.sum(0), "R", axis_index_groups=halves), "R", axis_index_groups=second))),
        f32(32, 8))


def nested(x, w):
    inner = jax.shard_map(lambda x, w: lax.psum(x @ w, "M"), in_specs=(P(None, "M"), P("M", None)), out_specs=P(),
                          axis_names={"M"})
    return jnp.tanh(inner(x, w))


write("nested", lambda x, w: jnp.tanh(x @ w),
      jax.shard_map(nested, mesh=m42, in_specs=(P("B", None), P()), out_specs=P("B", None), axis_names={"B"}),
      f32(16, 8), f32(8, 4))

# ---- Whether all devices agree ----------------------------------------------------------------------

finite = lambda x: jnp.isfinite(x).all()
for name, agree in (("all_finite", lax.pmin), ("some_finite", lax.pmax)):
    write(name, lambda x: jnp.where(finite(x), x, 0.0), on(m8, (row,), row)(
        lambda x: jnp.where(agree(finite(x).astype(jnp.int32), "R") > 0, x, 0.0)), f32(32, 8))

# ---- Layers in a loop: the gradients of a batch's shards ------------------------------------------

def layers_loss(p, x):
    return jnp.mean(lax.scan(lambda h, w: (h + jnp.tanh(h @ w), None), x, p)[0] ** 2)


for name, reduce in ("layers", lax.pmean), ("layers_sum", lax.psum):
    write(name, jax.grad(layers_loss), on(m8, (P(), row), P(), check_vma=False)(
        lambda p, x: reduce(jax.grad(layers_loss)(p, x), "R")), f32(3, 8, 8), f32(16, 8))

# The derivative of the hand-written loop carries the weights, and a 1, through its loops.
for name, reduce in ("layers_of_loss", lax.pmean), ("layers_of_loss_sum", lax.psum):
    write(name, jax.grad(layers_loss), on(m8, (P(), row), P())(
        lambda p, x: jax.grad(lambda p: reduce(layers_loss(p, x), "R"))(p)), f32(3, 8, 8), f32(16, 8))

# ---- A bias, added once -----------------------------------------------------------------------------

share = lambda b: b / 8
first = lambda b: jnp.where(lax.axis_index("R") == 0, b, 0.0)
for name, mine in ("bias_in_shares", share), ("bias_of_first", first), ("bias_of_each", lambda b: b):
    write(name, lambda x, w, b: x @ w + b, on(m8, (P(None, "R"), row, P()), P(), check_vma=False)(
        lambda x, w, b: lax.psum(x @ w + mine(b), "R")), f32(4, 16), f32(16, 8), f32(8))
