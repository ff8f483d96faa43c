"""Computes losses and gradients of the small models (examples/models/small) with JAX in binary64.

    python models.py          writes models.dat, which tests/models/gradients.cpp reads

The inputs of a model have the numbers of its program's inputs. Element j of input i is a function of i and j (`real`,
`whole`), so inputs need not be stored. The file keeps, for each gradient, a sum weighted by functions of the element
indices, the norm, and the first, middle and last element.
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

jax.config.update("jax_enable_x64", True)


def numbers(shape, i):
    j = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (j * 37 + i * 101 + (j * j) % 53).reshape(shape)


def real(shape, i):
    """Returns multiples of 1/128 in [-1/2, 1/2]."""
    return (numbers(shape, i) % 129 - 64) / 128


def whole(shape, i, limit):
    return (numbers(shape, i) % limit).astype(np.int32)


# ---- Building blocks, as their papers define them ---------------------------------------------

def rms_norm(x, scale):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def standardized(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered ** 2).mean(-1, keepdims=True) + 1e-5)


def rotary(x):
    k = x.shape[-1]
    angle = np.arange(x.shape[1])[:, None, None] * 10000.0 ** (-2 * np.arange(k // 2) / k)
    a, b = x[..., :k // 2], x[..., k // 2:]
    return jnp.concatenate((a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)), -1)


def attention(q, k, v, causal=False):
    k, v = (jnp.repeat(t, q.shape[2] // k.shape[2], 2) for t in (k, v))
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(np.tri(q.shape[1], k.shape[1], dtype=bool), scores, -np.inf)
    return jnp.einsum("bhqs,bshk->bqhk", nn.softmax(scores), v)


def cross_entropy(logits, targets):
    return -jnp.take_along_axis(nn.log_softmax(logits), targets[..., None], -1).mean()


def squared_error(x, y):
    return ((x - y) ** 2).mean()


# ---- Models: parameters as shapes, in the order of their structs, and losses ------------------

LLAMA_LAYER = {"norm1": (16,), "wq": (16, 4, 4), "wk": (16, 2, 4), "wv": (16, 2, 4), "wo": (4, 4, 16), "norm2": (16,),
               "gate": (16, 32), "up": (16, 32), "down": (32, 16)}
LLAMA = {"embed": (12, 16), "layers": [LLAMA_LAYER] * 2, "norm": (16,), "head": (16, 12)}


def llama(p, tokens, targets):
    x = p["embed"][tokens]
    for l in p["layers"]:
        h = rms_norm(x, l["norm1"])
        q, k, v = (jnp.einsum("bsd,dhk->bshk", h, l[w]) for w in ("wq", "wk", "wv"))
        x = x + jnp.einsum("bshk,hkd->bsd", attention(rotary(q), rotary(k), v, True), l["wo"])
        g = rms_norm(x, l["norm2"])
        x = x + (nn.silu(g @ l["gate"]) * (g @ l["up"])) @ l["down"]
    return cross_entropy(rms_norm(x, p["norm"]) @ p["head"], targets)


EXPERTS = {"norm": (8,), "router": (8, 4), "up": (4, 8, 16), "down": (4, 16, 8)}


def experts(p, x, y):
    h = rms_norm(x, p["norm"])
    chances = nn.softmax(h @ p["router"])
    chosen = nn.one_hot(chances.argmax(-1), 4, dtype=x.dtype)
    before = (chosen * (jnp.cumsum(chosen, 1) - chosen)).sum(-1)
    dispatch = lax.stop_gradient(jnp.einsum("gse,gsc->gsec", chosen, nn.one_hot(before, 6, dtype=x.dtype)))
    sent = jnp.einsum("gsec,gsd->egcd", dispatch, h)
    made = jnp.einsum("egcf,efd->egcd", nn.gelu(jnp.einsum("egcd,edf->egcf", sent, p["up"])), p["down"])
    back = jnp.einsum("gsec,egcd->gsd", dispatch * chances[..., None], made)
    return squared_error(x + back, y) + 0.01 * (chosen.mean((0, 1)) * chances.mean((0, 1))).sum()


LONG = {"norm": (8,), "query": (8, 4, 4), "key_in": (8, 4, 4), "value": (8, 4, 4), "out": (4, 4, 8)}


def long_attention(p, x, y):
    h = rms_norm(x, p["norm"])
    q, k, v = (jnp.einsum("bsd,dhk->bshk", h, p[w]) for w in ("query", "key_in", "value"))
    return squared_error(x + jnp.einsum("bshk,hkd->bsd", attention(q, k, v, True), p["out"]), y)


STACKED = {"up": (4, 8, 16), "down": (4, 16, 8), "scale": (4, 3)}


def stacked(p, x):
    for up, down, scale in zip(p["up"], p["down"], p["scale"]):
        x = x + jnp.tanh(x @ up) @ down * scale.sum()
    return (x * x).mean()


ADAPTERS = {"up_a": (16, 2), "up_b": (2, 32), "down_a": (32, 2), "down_b": (2, 16)}


def adapters(p, up, down, x, y):
    h = nn.gelu(x @ up + x @ p["up_a"] @ p["up_b"])
    return squared_error(x + h @ down + h @ p["down_a"] @ p["down_b"], y)


RECURRENCE = {"in": (8, 3, 16), "recurrent": (16, 3, 16), "bias": (3, 16), "out": (16, 8)}


def recurrence(p, x, h, y):
    states = []
    for inputs in jnp.einsum("tbd,dgh->tbgh", x, p["in"]) + p["bias"]:
        before = jnp.einsum("bh,hgk->bgk", h, p["recurrent"])
        update = nn.sigmoid(inputs[:, 0] + before[:, 0])
        reset = nn.sigmoid(inputs[:, 1] + before[:, 1])
        h = (1 - update) * jnp.tanh(inputs[:, 2] + reset * before[:, 2]) + update * h
        states.append(h)
    return squared_error(jnp.stack(states) @ p["out"], y)


CONTRASTIVE = {"image": (16, 8), "text": (16, 8), "scale": ()}


def contrastive(p, images, texts):
    unit = lambda v: v / jnp.sqrt((v * v).sum(-1, keepdims=True) + 1e-6)
    logits = unit(images @ p["image"]) @ unit(texts @ p["text"]).T * jnp.exp(p["scale"])
    own = np.arange(len(images))
    return cross_entropy(logits, own) + cross_entropy(logits.T, own)


NORM = {"scale": (16,), "bias": (16,)}
VISION_LAYER = {"ln1": NORM, "qkv": (16, 3, 4, 4), "out": (4, 4, 16), "ln2": NORM, "up": (16, 32), "down": (32, 16)}
VISION = {"embed": (2, 2, 3, 16), "position": (16, 16), "layers": [VISION_LAYER] * 2, "ln": NORM, "head": (16, 8)}


def vision(p, images, labels):
    norm = lambda q, x: standardized(x) * q["scale"] + q["bias"]
    grid = lax.conv_general_dilated(images, p["embed"], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = grid.reshape(8, 16, 16) + p["position"]
    for l in p["layers"]:
        q, k, v = jnp.moveaxis(jnp.einsum("bsd,dihk->bsihk", norm(l["ln1"], x), l["qkv"]), 2, 0)
        x = x + jnp.einsum("bshk,hkd->bsd", attention(q, k, v), l["out"])
        x = x + nn.gelu(norm(l["ln2"], x) @ l["up"]) @ l["down"]
    return cross_entropy(norm(p["ln"], x).mean(1) @ p["head"], labels)


DIFFUSION_LAYER = {"condition": (16, 6, 16), "query": (16, 4, 4), "key_in": (16, 4, 4), "value": (16, 4, 4),
                   "out": (4, 4, 16), "up": (16, 32), "down": (32, 16)}
DIFFUSION = {"in": (4, 16), "time": (8, 16), "layers": [DIFFUSION_LAYER] * 2, "out": (16, 4)}


def diffusion(p, x, noise, t):
    angle = t[:, None] * np.exp(-1.5 * np.arange(4))
    c = jnp.concatenate((jnp.sin(angle), jnp.cos(angle)), -1) @ p["time"]
    h = (jnp.cos(t)[:, None, None] * x + jnp.sin(t)[:, None, None] * noise) @ p["in"]
    for l in p["layers"]:
        by = jnp.einsum("bd,dpw->bpw", nn.silu(c), l["condition"])[:, :, None]
        g = standardized(h) * (1 + by[:, 0]) + by[:, 1]
        q, k, v = (jnp.einsum("bsd,dhk->bshk", g, l[w]) for w in ("query", "key_in", "value"))
        h = h + by[:, 2] * jnp.einsum("bshk,hkd->bsd", attention(q, k, v), l["out"])
        g = standardized(h) * (1 + by[:, 3]) + by[:, 4]
        h = h + by[:, 5] * (nn.gelu(g @ l["up"]) @ l["down"])
    return squared_error(h @ p["out"], noise)


STATE_SPACE = {"in": (8, 16), "gate": (8, 16), "low": (16, 2), "rate": (2, 16), "decay": (16, 4), "read": (16, 4),
               "write": (16, 4), "out": (16, 8)}


def state_space(p, x, y):
    u = nn.silu(x @ p["in"])
    rate = nn.softplus(u @ p["low"] @ p["rate"])
    write, read = u @ p["write"], u @ p["read"]
    h, made = 0, []
    for t in range(len(x)):
        h = jnp.exp(-rate[t][..., None] * jnp.exp(p["decay"])) * h + (rate[t] * u[t])[..., None] * write[t][:, None]
        made.append((h * read[t][:, None]).sum(-1))
    return squared_error(x + (jnp.stack(made) * nn.silu(x @ p["gate"])) @ p["out"], y)


RECOMMENDATION = {"users": (32, 8), "items": (16, 8), "bottom": (4, 8), "top": (11, 16), "last": (16,)}


def recommendation(p, dense, user, item, clicks):
    x, u, i = nn.relu(dense @ p["bottom"]), p["users"][user], p["items"][item]
    dots = [(a * b).sum(1, keepdims=True) for a, b in ((x, u), (x, i), (u, i))]
    return squared_error(nn.sigmoid(nn.relu(jnp.concatenate((x, *dots), 1) @ p["top"]) @ p["last"]), clicks)


MOLECULES = {"in": (4, 8), "message": (16, 8), "update": (16, 8), "out": (8,)}


def molecules(p, atoms, senders, receivers, energy):
    h = nn.relu(atoms @ p["in"])
    for _ in range(2):
        ends = [jnp.take_along_axis(h, each[..., None], 1) for each in (senders, receivers)]
        sent = nn.relu(jnp.concatenate(ends, -1) @ p["message"])
        received = jax.vmap(lambda at, m: jnp.zeros((6, 8)).at[at].add(m))(receivers, sent)
        h = h + nn.relu(jnp.concatenate((h, received), -1) @ p["update"])
    return squared_error(jnp.einsum("gnw,w->g", h, p["out"]), energy)


#: For each model: parameters, loss, shapes of the batch (for integers with their upper bound).
MODELS = {
    "llama": (LLAMA, llama, [((4, 8), 12), ((4, 8), 12)]),
    "experts": (EXPERTS, experts, [(4, 8, 8), (4, 8, 8)]),
    "long_attention": (LONG, long_attention, [(2, 16, 8), (2, 16, 8)]),
    "stacked": (STACKED, stacked, [(8, 8)]),
    "adapters": (ADAPTERS, adapters, [(16, 32), (32, 16), (8, 16), (8, 16)]),
    "recurrence": (RECURRENCE, recurrence, [(6, 8, 8), (8, 16), (6, 8, 8)]),
    "contrastive": (CONTRASTIVE, contrastive, [(8, 16), (8, 16)]),
    "vision": (VISION, vision, [(8, 8, 8, 3), ((8,), 8)]),
    "diffusion": (DIFFUSION, diffusion, [(8, 6, 4), (8, 6, 4), (8,)]),
    "state_space": (STATE_SPACE, state_space, [(6, 4, 8), (6, 4, 8)]),
    "recommendation": (RECOMMENDATION, recommendation, [(8, 4), ((8,), 16), ((8,), 16), (8,)]),
    "molecules": (MOLECULES, molecules, [(8, 6, 4), ((8, 10), 6), ((8, 10), 6), (8,)]),
}


def leaves(tree, name="grad"):
    """Yields names and leaves in the order of the struct; JAX itself sorts by name."""
    if isinstance(tree, dict):
        return [leaf for key, each in tree.items() for leaf in leaves(each, f"{name}.{key}")]
    if isinstance(tree, list):
        return [leaf for i, each in enumerate(tree) for leaf in leaves(each, f"{name}.{i}")]
    return [(name, tree)]


def filled(tree, next_input):
    if isinstance(tree, dict):
        return {key: filled(each, next_input) for key, each in tree.items()}
    if isinstance(tree, list):
        return [filled(each, next_input) for each in tree]
    return real(tree, next(next_input))


def main():
    lines = [f"# Losses and gradients of the small models, by models.py with jax {jax.__version__}:",
             "# NAME weighted-sum norm first middle last"]
    for name, (shapes, loss, batch) in MODELS.items():
        number = iter(range(1000))
        params = filled(shapes, number)
        given = [whole(*s[:1], next(number), s[1]) if isinstance(s[0], tuple) else real(s, next(number)) for s in batch]
        value, gradients = jax.value_and_grad(loss)(params, *given)
        lines += ["", f"model {name}", f"loss {float(value):.9e}"]
        for leaf, g in leaves(gradients):
            flat = np.asarray(g).ravel()
            weights = real(flat.shape, 1)
            row = (flat @ weights, np.linalg.norm(flat), flat[0], flat[flat.size // 2], flat[-1])
            lines.append(f"{leaf} " + " ".join(f"{v:.9e}" for v in row))
    path = pathlib.Path(__file__).parent / "models.dat"
    path.write_text("\n".join(lines) + "\n")
    print(f"{path.name}: {len(MODELS)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
