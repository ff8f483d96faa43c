"""Compares functions that examples/jax/partita_jit.py partitions with jax.jit, on eight CPU devices.

    PARTITA=build/examples/partita python jax_functions.py [TEST]...

Exit status 77: JAX is missing.
"""
import collections
import contextlib
import dataclasses
import io
import os
import sys
import time

os.environ["XLA_FLAGS"] = ("--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
                           "--xla_llvm_disable_expensive_passes=true")
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/jax"))
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import partita_jit
    from partita_jit import FIRST_DIVISIBLE_DIM, AutomaticPartition, ManualPartition
except ImportError as e:
    print(f"skipped: {e}; cmake/test.cmake makes an environment with jax")
    sys.exit(77)

BOUND = 1e-5  # for float32, relative to the maximum of a result (at least 1): sums may have another order
MESH = {"B": 4, "M": 2}


def check(holds, *what):
    if not holds:
        raise AssertionError(" ".join(map(str, what)))


def same(mine, theirs, bound=BOUND):
    """Checks that trees and types are equal, and that numbers differ only by rounding."""
    check(jax.tree.structure(mine) == jax.tree.structure(theirs), jax.tree.structure(mine), jax.tree.structure(theirs))
    for (path, a), b in zip(jax.tree.leaves_with_path(mine), jax.tree.leaves(theirs)):
        where = jax.tree_util.keystr(path)
        s, t = jax.typeof(a), jax.typeof(b)
        check((s.shape, s.dtype, s.weak_type) == (t.shape, t.dtype, t.weak_type), where, s, t)
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind != "f":
            check((a == b).all(), where, a, b)
        elif a.size:
            difference = float(np.abs(a - b).max()) / max(1.0, float(np.abs(b).max()))
            check(difference <= bound, where, "differs by", difference)


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


# ---- A small transformer ------------------------------------------------------------------------

WIDTH, HEADS, HIDDEN, WORDS, LENGTH, BATCH = 16, 8, 32, 24, 6, 8


def parameters(kv_heads=HEADS):
    size = WIDTH // HEADS
    layer = lambda i: {
        "wq": numbers(WIDTH, HEADS, size, seed=i), "wk": numbers(WIDTH, kv_heads, size, seed=i + 10),
        "wv": numbers(WIDTH, kv_heads, size, seed=i + 20), "wo": numbers(HEADS, size, WIDTH, seed=i + 30),
        "up": numbers(WIDTH, HIDDEN, seed=i), "down": numbers(HIDDEN, WIDTH, seed=i)}
    tree = {"embedding": numbers(WORDS, WIDTH), "layers": [layer(0), layer(1)]}
    return jax.tree.map(lambda x: x * 0.2, tree)


def forward(params, tokens):
    x = params["embedding"][tokens]
    for i, layer in enumerate(params["layers"]):
        groups = layer["wk"].shape[1]
        q = jnp.einsum("btd,dhk->bthk", x, layer["wq"])
        q = q.reshape(*q.shape[:2], groups, HEADS // groups, -1)
        k, v = (jnp.einsum("btd,dgk->btgk", x, layer[name]) for name in ("wk", "wv"))
        scores = jnp.einsum("btghk,bsgk->bghts", q, k)
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        mixed = jnp.einsum("bghts,bsgk->btghk", weights, v)
        mixed = partita_jit.tag(mixed.reshape(*mixed.shape[:2], HEADS, -1), f"mixed.{i}")
        x = x + jnp.einsum("bthk,hkd->btd", mixed, layer["wo"])
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return x @ params["embedding"].T


def train(state, tokens, *, rate=0.1, clip=None):
    """A step of gradient descent with momentum; returns the next state and the loss."""
    def loss(params):
        chosen = jax.nn.log_softmax(forward(params, tokens)[:, :-1])
        return -jnp.take_along_axis(chosen, tokens[:, 1:, None], 2).mean()

    value, gradient = jax.value_and_grad(loss)(state["params"])
    if clip is not None:
        gradient = jax.tree.map(lambda g: jnp.clip(g, -clip, clip), gradient)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradient)
    params = jax.tree.map(lambda p, m: p - rate * m, state["params"], momentum)
    return {"params": params, "momentum": momentum}, value


def state_of(params):
    return {"params": params, "momentum": jax.tree.map(np.zeros_like, params)}


TOKENS = np.random.default_rng(1).integers(0, WORDS, (BATCH, LENGTH)).astype(np.int32)
BP = ManualPartition({"tokens": 0}, axis="B", name="BP")
MP = ManualPartition({"state": {"params.layers.*.w*": 1, "params.layers.*.wo": 0, "params.layers.*.up": 1,
                                "params.layers.*.down": 0}}, axis="M", name="MP")
Z3 = ManualPartition({"state": FIRST_DIVISIBLE_DIM}, axis="B", name="Z3")


def train_under(schedule, mesh=MESH, kv_heads=HEADS, tokens=TOKENS, steps=2, **options):
    """Compares consecutive training steps with those of jax.jit."""
    mine = theirs = state_of(parameters(kv_heads))
    step = partita_jit.jit(train, schedule, mesh, **options)
    for _ in range(steps):
        (mine, loss), (theirs, expected) = step(mine, tokens, rate=0.5), jax.jit(train)(theirs, tokens, rate=0.5)
        same((mine, loss), (theirs, expected))
    return step, mine


def test_transformer_bp():
    train_under(BP)


def test_transformer_bp_mp_z3():
    step, state = train_under([BP, MP, Z3])
    facts = step.metadata(state, TOKENS, rate=0.5)
    check([t["name"] for t in facts["tactics"]] == ["BP", "MP", "Z3"], facts["tactics"])
    gathers = [t["figures"]["all_gather"] for t in facts["tactics"]]
    check(gathers[0] == 0 and gathers[2] > gathers[1], gathers)
    check(len(step.programs) == 1, "the state of a step is what the next one takes, without another partitioning")
    check(str(state["params"]["layers"][0]["up"].sharding.spec) == "P('B', 'M')", state["params"]["layers"][0]["up"].sharding)


def test_grouped_query_attention():
    """Two groups over eight devices: the axis is split, and layouts have sub-axes."""
    heads = ManualPartition({"state.params.layers": {"*.wq": 1}}, axis="M", name="MP")
    step, state = train_under([heads], mesh={"M": 8}, kv_heads=2)
    axes = [axis for x in jax.tree.leaves(state) for axis in x.sharding.mesh.axis_names]
    check(any(":(" in axis for axis in axes), "no part of an axis", set(axes))
    spec = str(state["params"]["layers"][0]["wk"].sharding.spec)
    check(spec == "P(None, 'M:(1)2', None)", spec)
    groups = ManualPartition({"state.params.layers": {"*.wk": 1, "*.wv": 1}}, axis="M:(1)2", name="groups")
    step, state = train_under([BP, groups], mesh={"B": 2, "M": 4}, kv_heads=2)
    spec = str(state["params"]["layers"][0]["wk"].sharding.spec)
    check("M:(1)2" in spec, spec)


def test_parts_of_axes_in_any_order():
    f = lambda x, y: (jnp.sin(x) + y.T, y * 2)
    x, y = numbers(24, 48), numbers(48, 24)
    for schedule in ('S: shard {x: {{"A:(4)2", "A:(1)2"}, {"C", "A:(2)2"}}}', 'S: shard {y: {{"A:(2)4"}, "C"}}',
                     'S: shard {x: {{C, A}}}', 'manual "A:(2)4" {x: 0}; manual "A:(1)2" {y: 0}'):
        same(partita_jit.jit(f, schedule, {"A": 8, "C": 1})(x, y), f(x, y))


def test_padding():
    """Nine examples over four devices: arguments and results with padding, and states."""
    step, state = train_under([BP + " pad", MP, Z3 + " pad"], tokens=np.concatenate([TOKENS, TOKENS[:1]]))
    heads = ManualPartition({"state": {"params.layers.*.w*": 1, "params.layers.*.wo": 0}}, axis="M")
    train_under(heads + " pad", mesh={"M": 3}, steps=1)
    f = lambda x, w: {"rows": jnp.tanh(x @ w), "sum": x.sum(), "greatest": jnp.max(x, 0),
                      "ints": (x[:, 0] * 9).astype(jnp.int8)}
    x, w = numbers(9, 5) - 5, numbers(5, 7)
    g = partita_jit.jit(f, 'manual "B" {x: 0} pad; manual "M" {w: 1} pad; ', MESH)
    same(g(x, w), f(x, w))
    check(g.metadata(x, w)["inputs"][0]["padded_shape"] == [12, 5], g.metadata(x, w)["inputs"])
    same(g(g(x, w)["rows"][:, :5], jax.device_put(w, jax.devices()[3])), f(f(x, w)["rows"][:, :5], w))
    one = lambda x: (x + 1, x.sum())
    same(partita_jit.jit(one, 'manual "B" {x: 0} pad', MESH)(numbers(1, 3)), one(numbers(1, 3)))


def test_loops():
    def step(params, x):
        def loss(params):
            def body(h, layer):
                h = h + jnp.tanh(h @ layer["w"]) @ layer["v"]
                return h, h.mean()
            h, means = jax.lax.scan(jax.checkpoint(body), x, params)
            return (h ** 2).mean(), means
        (value, means), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value, means

    params, x = {"w": numbers(4, 16, 32) * 0.2, "v": numbers(4, 32, 16) * 0.2}, numbers(8, 16)
    schedule = [ManualPartition({"x": 0}, axis="B"), ManualPartition({"params": {"w": 2, "v": 1}}, axis="M"),
                ManualPartition({"params": FIRST_DIVISIBLE_DIM}, axis="B")]
    same(partita_jit.jit(step, schedule, MESH)(params, x), jax.jit(step)(params, x))

    def f(x, n):
        y = jax.lax.fori_loop(0, 5, lambda i, a: a * 1.01 + x[i % 8], x)
        z = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.1), (0, y))
        return z[1], jax.lax.map(lambda row: row.sum(), x), jax.lax.cond(n > 2, lambda a: a + 1, lambda a: a - 1, x)

    g = partita_jit.jit(f, 'manual "B" {x: 0} pad', MESH)
    for n in (2, 4):
        same(g(x, n), jax.jit(f)(x, n))


def test_donation():
    for names in ({"donate_argnums": 0}, {"donate_argnames": ("state",)}):
        step = partita_jit.jit(train, [BP, MP, Z3], MESH, **names)
        given = mine = jax.tree.map(jnp.asarray, state_of(parameters()))
        theirs = jax.tree.map(jnp.array, given)
        tokens = jnp.asarray(TOKENS)
        for _ in range(3):
            before = mine
            (mine, loss), (theirs, expected) = step(mine, tokens), jax.jit(train)(theirs, tokens)
            check(all(x.is_deleted() for x in jax.tree.leaves(before)), "a donated array is there after the call")
            check(not tokens.is_deleted(), "what is not donated stays")
            same((mine, loss), (theirs, expected))
        module = step.program((mine, tokens), {})[0].module
        check(module.count("tf.aliasing_output") + module.count("jax.buffer_donor") == len(jax.tree.leaves(mine)), module[:3000])
    keep = partita_jit.jit(lambda x: x + 1, 'manual "B" {x: 0}', MESH)
    x = jnp.ones(8)
    same((keep(x), keep(x)), (x + 1, x + 1))
    both = partita_jit.jit(lambda a, b: (b * 2, a * 3), 'manual "B" {a: 0} pad', MESH, donate_argnums=(0, 1))
    a, b = jnp.arange(9.0), jnp.arange(9.0) + 1
    same(both(a, b), (np.arange(9, dtype="f") * 2 + 2, np.arange(9, dtype="f") * 3))
    check(a.is_deleted() and b.is_deleted(), "padded arguments are donated, too")


def test_keyword_arguments():
    def f(x, *more, scale, bias=0.5, **others):
        return x * scale + bias + sum(more) + others["table"]["a"] - others["table"]["b"].sum()

    g = partita_jit.jit(f, 'manual "B" {x: 0, "others.table.b": 0}', MESH)
    x, table = numbers(8, 4), {"a": 3.0, "b": numbers(4)}
    for args, kwargs in (((x,), {"scale": 2.0}), ((x, x + 1, 4), {"scale": x, "bias": 1}), ((x,), {"bias": x, "scale": 1})):
        same(g(*args, table=table, **kwargs), jax.jit(f)(*args, table=table, **kwargs))
    same(g(scale=2, x=x, table=table), jax.jit(f)(scale=2, x=x, table=table))
    check(len(g.programs) == 4, len(g.programs))


def test_static_arguments():
    def f(x, power, kind="sum", *, double):
        y = x ** power
        y = y.sum(0) if kind == "sum" else y.max(0)
        return 2 * y if double else y

    x = numbers(8, 4)
    for options in ({"static_argnums": (1, 2), "static_argnames": "double"},
                    {"static_argnames": ("power", "kind", "double")}):
        g, j = partita_jit.jit(f, 'manual "B" {x: 0}', MESH, **options), jax.jit(f, **options)
        for args, kwargs in (((x, 2), {"double": True}), ((x, 3, "max"), {"double": False}),
                             ((x, 2, "max"), {"double": True})):
            same(g(*args, **kwargs), j(*args, **kwargs))
        if "static_argnums" not in options:
            same(g(x, power=2, kind="max", double=1), j(x, power=2, kind="max", double=1))
        same(g(x, 2, double=True), j(x, 2, double=True))
        check(len(g.programs) == (3 if "static_argnums" in options else 4), len(g.programs))
    last = partita_jit.jit(lambda x, n: x * n, 'manual "B" {x: 0}', MESH, static_argnums=-1)
    same(last(x, 3), x * 3)


def test_trees_scalars_and_types():
    Pair = collections.namedtuple("Pair", ["left", "right"])

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Box:
        inside: dict

    def f(pair, box, n, flag):
        weak = n * 2
        box = Box({"b": box.inside["b"] * weak, "n": n, "flag": ~flag})
        return Pair(pair.right, {"weak": weak, "none": None}), box, 1.5, \
            jnp.bfloat16(2) * pair.left.astype(jnp.bfloat16), pair.left[:0]

    args = lambda n: (Pair(numbers(8, 4), np.arange(6, dtype=np.int32)), Box({"b": jnp.ones(8, jnp.float32)}), n,
                      np.array([True, False]))
    g = partita_jit.jit(f, 'manual "B" {pair.left: 0}; manual "M" {"pair.right": 0, "box.inside.b": 0}', MESH)
    for n in (2, np.float32(2), 2.0, jnp.float32(3), True):
        same(g(*args(n)), jax.jit(f)(*args(n)))
    check(len(g.programs) == 4, "types tell programs apart, values do not:", len(g.programs))
    none = partita_jit.jit(lambda: jnp.arange(8), 'manual "B" {result: 0}', MESH)
    same(none(), jnp.arange(8))


def test_random_keys():
    def f(key, x):
        key, now = jax.random.split(key)
        return key, jnp.where(jax.random.bernoulli(now, 0.5, x.shape), x, 0)

    x = numbers(8, 4)
    g = partita_jit.jit(f, 'manual "B" {x: 0}', MESH)
    for key in jax.random.key(1), jax.random.PRNGKey(1):
        for _ in range(2):
            same(g(key, x), jax.jit(f)(key, x))
            key = g(key, x)[0]


def test_devices_and_shardings():
    """A mesh of selected devices, and arguments with any layout."""
    devices = np.array(jax.devices())[::-1].reshape(2, 4)
    mesh = jax.sharding.Mesh(devices, ("B", "M"))
    f = lambda x, w: jnp.tanh(x @ w)
    x, w = numbers(8, 4), numbers(4, 8)
    g = partita_jit.jit(f, 'manual "B" {x: 0}; manual "M" {w: 1}', mesh)
    other = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
    place = lambda x, *spec: jax.device_put(x, jax.sharding.NamedSharding(other, jax.sharding.PartitionSpec(*spec)))
    for a, b in ((x, w), (jax.device_put(x, jax.devices()[5]), w), (place(x, "d"), place(w, None, "d")),
                 (place(x), place(w))):
        same(g(a, b), f(x, w))
    check(list(g(x, w).sharding.mesh.devices.flat) == list(devices.flat), g(x, w).sharding)
    small = partita_jit.jit(f, 'manual "B" {x: 0}', {"B": 2})
    same(small(x, w), f(x, w))
    same(partita_jit.jit(f, "", {"B": 1})(x, w), f(x, w))


def test_automatic_partition():
    """The paper's listing 7: a manual tactic, then a search along another axis, for a device."""
    auto = AutomaticPartition(axis="M", name="AutoMP", evaluations=60)
    step, state = train_under([BP, auto], device="A100-80", steps=1)
    facts = step.metadata(state_of(parameters()), TOKENS, rate=0.5)
    check([t["name"] for t in facts["tactics"]] == ["BP", "AutoMP"], facts["tactics"])
    for t in facts["tactics"]:
        check(t["step_seconds"] > 0 and t["figures"]["peak_bytes"] > 0 and t["fits"], t)
    check("on {\"B\":4, \"M\":2} of A100-80:" in step.report(state, TOKENS, rate=0.5), "the report tells times")
    wide = lambda x, w: jnp.tanh(x @ w) @ w.T
    types = jax.ShapeDtypeStruct((65536, 4096), jnp.float32), jax.ShapeDtypeStruct((4096, 16384), jnp.float32)
    both = AutomaticPartition(axes=["B", "M"], evaluations=100, overlap=False)
    search = partita_jit.jit(wide, both, MESH, device="A100-80")
    notes = search.metadata(*types)["tactics"][0]["notes"]
    check(any("moves" in note for note in notes), notes)


def test_mistakes():
    x = numbers(8, 4)
    def message(run):
        try:
            run()
        except (ValueError, TypeError) as e:
            return str(e)
        return ""

    f = lambda xs: xs * 2
    for schedule, *parts in (('manual "B" {x: 0}', "S006", '"x"', "xs"),
                             ('\nmanul "B" {xs: 0}', "X003", "2:1", "manul", "manual"),
                             ('manual "C" {xs: 0}', "S001", '"C"'),
                             ('automatic "B"', "X015", "1:1", "device"),
                             ('manual "B" {xs: 1}; manual "B" {xs: 0}', "S0")):
        said = message(lambda: partita_jit.jit(f, schedule, MESH)(x))
        check(said and all(part in said for part in parts), repr(schedule), "says", repr(said))
    check("16 devices" in message(lambda: partita_jit.jit(f, "", {"B": 16})), "too few devices")
    g = partita_jit.jit(f, "", MESH)
    check("inside jit" in message(lambda: jax.jit(g)(x)), message(lambda: jax.jit(g)(x)))
    check("inside jit" in message(lambda: jax.grad(lambda x: g(x).sum())(x)), "grad")


def test_the_example():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        partita_jit.main()
    check("w1 is laid out as P('B', 'M')" in out.getvalue(), out.getvalue())


def main(wanted):
    tests = {name[5:]: test for name, test in globals().items() if name.startswith("test_")}
    bad = 0
    for name in wanted or tests:
        began = time.time()
        try:
            tests[name]()
            print(f"{name}: right, {time.time() - began:.1f} s", flush=True)
        except Exception as e:
            bad += 1
            print(f"{name}: {type(e).__name__}: {e}", flush=True)
            if wanted:
                raise
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
