"""Compares transformers whose layers run in a scan with the same layers unrolled.

    PARTITA=build/examples/partita python scanned_models.py [lax | flax]...

For plain `lax.scan` and flax's `nn.scan`, for the forward pass, the gradient, the gradient with checkpointed layers and
the one with dropout, under BP, BP+MP and BP+MP+Z3 on a mesh B=4, M=2:
  * FLOPs, bytes sent and collectives (times trips) equal those of the unrolled model,
  * the simulated time of a step is 0.95 to 1.08 of it: a scan stores residuals that the unrolled step recomputes
    (all-reduces are not combined here: a scan combines those of a layer, unrolled layers all),
  * the module that `partita --emit local` writes, run by XLA on eight devices, and the emulated program compute what JAX
    computes (in float64, within 1e-9 of the largest number of a result; dropout in float32, within 1e-5).
Exit status 77: a package is missing.
"""
import json
import os
import sys
import tempfile

import public_models  # sets XLA's options; skips if packages are missing
import jax
import jax.numpy as jnp
import numpy as np
import xla_models
from flax import linen as nn

LAYERS, BATCH, SEQUENCE, WIDTH, HEADS, HIDDEN, WORDS = 8, 8, 8, 16, 2, 32, 24
MEGATRON = {"lax": {"qkv": 1, "out": 0, "up": 1, "down": 0},
            "flax": {"attention.query.kernel": 1, "attention.key.kernel": 1, "attention.value.kernel": 1,
                     "attention.out.kernel": 0, "up.kernel": 1, "down.kernel": 0}}
ZERO = {"lax": {"qkv": 0, "out": 1, "up": 0, "down": 1},
        "flax": {"attention.query.kernel": 0, "attention.key.kernel": 0, "attention.value.kernel": 0,
                 "attention.out.kernel": 2, "up.kernel": 0, "down.kernel": 1}}
FORMS = ["forward", "gradient", "checkpointed", "dropout"]


def normalized(h):
    mean = h.mean(-1, keepdims=True)
    return (h - mean) * jax.lax.rsqrt(((h - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def lax_layer(h, p, key):
    q, k, v = jnp.moveaxis((normalized(h) @ p["qkv"]).reshape(*h.shape[:2], HEADS, 3, -1), 3, 0)
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    h = h + jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(h.shape) @ p["out"]
    m = jax.nn.gelu(normalized(h) @ p["up"]) @ p["down"]
    if key is not None:
        m = jnp.where(jax.random.bernoulli(key, 0.9, m.shape), m / 0.9, 0)
    return h + m


class FlaxLayer(nn.Module):
    dropout: bool

    @nn.compact
    def __call__(self, h):
        a = nn.LayerNorm(use_bias=False, use_scale=False)(h)
        h = h + nn.MultiHeadDotProductAttention(HEADS, name="attention")(a, a)
        m = nn.gelu(nn.Dense(HIDDEN, name="up")(nn.LayerNorm(use_bias=False, use_scale=False)(h)))
        return h + nn.Dropout(0.1, deterministic=not self.dropout)(nn.Dense(WIDTH, name="down")(m))


class FlaxScanned(nn.Module):
    dropout: bool
    checkpointed: bool

    @nn.compact
    def __call__(self, h, _):
        layer = nn.remat(FlaxLayer) if self.checkpointed else FlaxLayer
        return layer(self.dropout, name="layer")(h), None


def flax_layer(h, p, key):
    return FlaxLayer(key is not None).apply({"params": p}, h, rngs={"dropout": key} if key is not None else None)


def stacked_parameters(framework):
    r = np.random.RandomState(0)
    if framework == "lax":
        shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
        return {name: (r.randn(LAYERS, *s) * 0.1).astype("f4") for name, s in shapes.items()}
    init = lambda key: FlaxLayer(False).init(key, jnp.zeros((BATCH, SEQUENCE, WIDTH)))["params"]
    return jax.vmap(init)(jax.random.split(jax.random.PRNGKey(0), LAYERS))


def layers_of(framework, form, scanned):
    """Returns a function (h, parameters, key) -> h."""
    layer = {"lax": lax_layer, "flax": flax_layer}[framework]
    each = jax.checkpoint(layer) if form == "checkpointed" else layer

    def unrolled(h, parameters, key):
        keys = jax.random.split(key, LAYERS) if form == "dropout" else [None] * LAYERS
        for p, k in zip(parameters, keys):
            h = each(h, p, k)
        return h

    def by_lax(h, parameters, key):
        if form != "dropout":
            return jax.lax.scan(lambda h, p: (each(h, p, None), None), h, parameters)[0]
        return jax.lax.scan(lambda h, x: (each(h, *x), None), h, (parameters, jax.random.split(key, LAYERS)))[0]

    def by_flax(h, parameters, key):
        model = nn.scan(FlaxScanned, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True},
                        length=LAYERS)(form == "dropout", form == "checkpointed")
        return model.apply({"params": {"layer": parameters}}, h, None, rngs={"dropout": key})[0]

    return {"lax": by_lax, "flax": by_flax}[framework] if scanned else unrolled


def schedules(framework, scanned):
    def line(name, axis, dims):
        # A stacked parameter has its layers as dimension 0.
        entries = [f'"params.layers.{k}": {d + 1}' if scanned else f'"params.layers.*.{k}": {d}' for k, d in dims.items()]
        return f'{name}: manual "{axis}" {{{", ".join(entries)}}}\n'

    BP = 'passes combine_below none\nBP: manual "B" {batch: 0}\n'
    MP = line("MP", "M", MEGATRON[framework])
    return {"BP": BP, "BP+MP": BP + MP, "BP+MP+Z3": BP + MP + line("Z3", "B", ZERO[framework])}


def model(framework, form, scanned):
    layers = layers_of(framework, form, scanned)
    stacked = stacked_parameters(framework)
    r = np.random.RandomState(1)
    parameters = {"table": r.randn(WORDS, WIDTH).astype("f4"),
                  "layers": stacked if scanned else [jax.tree.map(lambda a: a[i], stacked) for i in range(LAYERS)]}
    batch = r.randint(0, WORDS, (BATCH, SEQUENCE)).astype("i4")

    def forward(params, batch, key):
        return normalized(layers(params["table"][batch], params["layers"], key)) @ params["table"].T

    def loss(params, batch, key):
        wanted = jax.nn.one_hot(jnp.roll(batch, -1, 1), WORDS)
        return -(jax.nn.log_softmax(forward(params, batch, key)) * wanted).mean()

    def step(params, batch, key):
        if form == "forward":
            return forward(params, batch, key)
        value, gradient = jax.value_and_grad(loss)(params, batch, key)
        return {"params": jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), "loss": value}

    arguments = jax.tree.map(jnp.asarray, {"params": parameters, "batch": batch, "key": np.array([1, 2], np.uint32)})
    return lambda full: (step, arguments, schedules(framework, scanned))


class InFloat32(public_models.Model):
    """Checks in float32, since a module whose random bits become float32 has no version in float64."""

    def __init__(self, name):
        xla_models.Model.__init__(self, name)
        results = xla_models.ours(self.module, self.leaves, jax.devices()[:1])()[0]
        self.expected = [np.asarray(pieces[0]) for pieces in results]


def figures(m, schedule):
    with tempfile.TemporaryDirectory() as folder:
        m.write(folder, schedule)
        with open(os.path.join(folder, "system"), "a") as out:
            out.write("device A100-80\n")
        facts = json.loads(xla_models.partita(folder, "schedule", "system", "--json"))
    return facts["figures"], facts["step_seconds"]


def main(wanted):
    bad = 0
    for framework in wanted or ["lax", "flax"]:
        for form in FORMS:
            names = [f"{framework} {form} {how}" for how in ("scanned", "unrolled")]
            for name in names:
                xla_models.jax_models.MODELS[name] = model(framework, form, name == names[0])
            pair = [xla_models.Model(name) for name in names]
            for schedule in pair[0].schedules:
                (mine, my_time), (theirs, their_time) = (figures(m, schedule) for m in pair)
                ratios = {k: mine[k] / theirs[k] if theirs[k] else 1.0 + mine[k]
                          for k in ("flops", "collective_bytes", "collectives")}
                right = all(abs(r - 1) < 0.005 for r in ratios.values()) and 0.95 <= my_time / their_time <= 1.08
                print(f"{names[0]}, {schedule}: " + ", ".join(f"{k} {r:.3f}" for k, r in ratios.items()) +
                      f", time {my_time / their_time:.3f}{'' if right else ' DIFFERS'}", flush=True)
                bad += not right
            exact = form != "dropout"
            for way, difference in (public_models.Model if exact else InFloat32)(names[0]).differences(["BP+MP+Z3"]):
                right = difference <= (public_models.BOUND if exact else 1e-5)
                bad += not right
                print(f"{names[0]}, {way}: {difference:.1e}{'' if right else ' DIFFERS'}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
