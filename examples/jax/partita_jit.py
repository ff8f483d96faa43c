"""Partitions a JAX function with Partita and runs it on jax.devices().

    step = partita_jit.jit(f, 'BP: manual "B" {x: 0}', {"B": 4, "M": 2}, donate_argnames="params")
    params, loss = step(params, x, scale=0.5)   # accepts arrays with any sharding; returns arrays with NamedShardings
    print(step.report(params, x, scale=0.5))    # the effect of each tactic
    step.metadata(params, x, scale=0.5)         # the same as a dict: "tactics", each with its "figures", layouts, ...

A schedule is the text of a specification (include/partita/spec/README.md), or a list of tactics: texts,
ManualPartition, AutomaticPartition. With device="A100-80" the report has times, and AutomaticPartition searches for
that device; system="memory 16 GiB" adds lines to the system. The mesh is a jax.sharding.Mesh, or a dict of sizes over
jax.devices().

Arguments have the names of f's parameters; leaves of trees have paths: `params['w']` is "params.w". `tag(value, "h")`
names an inner value of f. `report` and `metadata` also accept jax.ShapeDtypeStructs. Donation and static arguments work
as in jax.jit.

- A sub-axis in a layout becomes an axis of the results' mesh: the layout "A":(1)4 becomes the mesh axis "A:(1)4".
- JAX has no uneven shardings. This module pads an argument in its global shape and slices a padded result; JAX may then
  replicate the padded dimension of the result.
- A partitioned function cannot be called inside jax.jit and has no derivative. Partition the outer function instead.

Requires the program `partita` (on the path, or in PARTITA), and as many devices as the mesh:

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python partita_jit.py      # tries it on eight CPU devices

JAX has no public interface to run one module per device, so this uses compile_and_load and execute_sharded of jaxlib's
client.
"""
import functools
import inspect
import itertools
import json
import math
import os
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import backend
from jax.sharding import Mesh, NamedSharding, PartitionSpec

REPLICATED, FIRST_DIVISIBLE_DIM, UNKNOWN = "replicated", "first_divisible_dim", "unknown"


def quoted(name):
    return json.dumps(name, ensure_ascii=False)


def ManualPartition(inputs, axis, name="manual"):
    """Returns a manual tactic. `inputs` maps names to dimensions and can be nested: {"x": 0, "params": {"w": 1}}."""
    def entries(tree, prefix):
        for key, where in tree.items():
            yield from entries(where, f"{prefix}{key}.") if isinstance(where, dict) else [f"{quoted(prefix + key)}: {where}"]
    return f'{quoted(name)}: manual {quoted(axis)} {{{", ".join(entries(inputs, ""))}}}'


def AutomaticPartition(axis=(), name="automatic", axes=(), **options):
    """Returns a search along axes, for the device of `jit`. Options: evaluations, seconds, memory, seed, ..."""
    axes = axes or ([axis] if isinstance(axis, str) else axis)
    text = lambda value: str(value).lower() if isinstance(value, bool) else value
    given = ", ".join(f"{key}: {text(value)}" for key, value in options.items())
    return f'{quoted(name)}: automatic {", ".join(map(quoted, axes))} {{{given}}}'


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def tag(x, name):
    """Returns x under a name that tactics can use."""
    return jax.lax.composite(lambda x, *, name: x, "partita.tag")(x, name=name)


@tag.defjvp
def _(name, primals, tangents):
    return tag(primals[0], name), tangents[0]


def run_partita(folder, *options):
    command = [os.environ.get("PARTITA", "partita"), "module.mlir", "schedule", "system", *options]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if made.returncode != 0:
        raise ValueError(made.stderr.strip())
    return made.stdout


def type_of(x):
    if isinstance(x, jax.ShapeDtypeStruct):
        return x
    t = jax.typeof(x)
    return jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type)


def is_key(x):
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


class Layout:
    """The layout of an argument or result: its sharding, and its shapes without and with padding."""

    def __init__(self, fact, parts, mesh):
        def axes_of(part):
            name, pre, size = (part["axis"], part["pre"], part["size"]) if isinstance(part, dict) else (part, 1, math.inf)
            return [axis for axis, begin in parts[name] if pre <= begin < pre * size]
        spec = [tuple(itertools.chain(*map(axes_of, dim))) or None for dim in fact["dims"]]
        self.sharding = NamedSharding(mesh, PartitionSpec(*spec))
        self.shape, self.padded = tuple(fact["shape"]), tuple(fact["padded_shape"])

    def placed(self, x, donate):
        if self.padded != self.shape:
            x = jnp.pad(x, [(0, padded - size) for size, padded in zip(self.shape, self.padded)])
        return jax.device_put(x, self.sharding, donate=donate)

    def joined(self, pieces):
        x = jax.make_array_from_single_device_arrays(self.padded, self.sharding, pieces)
        return x if self.padded == self.shape else jax.lax.slice(x, (0,) * x.ndim, self.shape)


def layouts_of(facts, devices):
    """Returns the layouts of inputs and outputs on one mesh; an axis that any of them splits becomes several axes."""
    cuts = {name: {1, size} for name, size in facts["axes"].items()}
    for value in facts["inputs"] + facts["outputs"]:
        for part in itertools.chain(*value["dims"]):
            if isinstance(part, dict):
                cuts[part["axis"]] |= {part["pre"], part["pre"] * part["size"]}
    parts, sizes = {}, {}
    for name, ends in cuts.items():
        pairs = list(itertools.pairwise(sorted(ends))) or [(1, 1)]
        parts[name] = [(name if len(pairs) == 1 else f"{name}:({pre}){end // pre}", pre) for pre, end in pairs]
        sizes |= {axis: end // pre for (axis, _), (pre, end) in zip(parts[name], pairs)}
    mesh = Mesh(np.array(devices).reshape(*sizes.values()), tuple(sizes))
    return [[Layout(value, parts, mesh) for value in facts[kind]] for kind in ("inputs", "outputs")]


class Program:
    """A partitioned function for fixed argument types. The first call compiles it."""

    def __init__(self, lowered, results, folder, devices):
        self.facts = json.loads(run_partita(folder, "--json", "--emit", "local", "--out", "local.mlir"))
        with open(os.path.join(folder, "local.mlir")) as local:
            self.module = local.read()
        self.devices = devices
        self.donated = [argument.donated for argument in jax.tree.leaves(lowered.args_info)]
        self.results, self.tree = jax.tree.flatten(results)
        self.inputs, self.outputs = layouts_of(self.facts, devices)

    @functools.cached_property
    def executable(self):
        options = backend.get_compile_options(num_replicas=len(self.devices), num_partitions=1,
                                              device_assignment=np.array([[d.id] for d in self.devices]))
        return self.devices[0].client.compile_and_load(self.module, self.devices, options)

    def __call__(self, leaves):
        keys = {x.dtype: jax.random.key_impl(x) for x in leaves if isinstance(x, jax.Array) and is_key(x)}
        placed = [layout.placed(jax.random.key_data(x) if isinstance(x, jax.Array) and is_key(x) else x, donate)
                  for x, layout, donate in zip(leaves, self.inputs, self.donated)]
        pieces = self.executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        for x, donate in zip(leaves, self.donated):
            if donate and isinstance(x, jax.Array) and not x.is_deleted():
                x.delete()  # even if XLA could not reuse its memory

        def result(layout, pieces, t):
            x = layout.joined(pieces)
            if is_key(t):
                return jax.random.wrap_key_data(x, impl=keys.get(t.dtype))
            # No public function returns a weak type.
            weak = dict(new_dtype=x.dtype, weak_type=True, sharding=None)
            return jax.lax.convert_element_type_p.bind(x, **weak) if t.weak_type else x
        return jax.tree.unflatten(self.tree, map(result, self.outputs, pieces, self.results))


class Partitioned:
    """The result of `jit`. Makes a Program for each combination of argument types and static values."""

    def __init__(self, function, schedule, mesh, device=None, system="", **options):
        self.schedule = schedule if isinstance(schedule, str) else "\n".join(schedule)
        axes = dict(mesh.shape if isinstance(mesh, Mesh) else mesh)
        available = list(mesh.devices.flat) if isinstance(mesh, Mesh) else jax.devices()
        count = math.prod(axes.values())
        if len(available) < count:
            raise ValueError(f"the mesh has {count} devices; jax has {len(available)}")
        self.devices = available[:count]
        self.system = "".join(f"axis {quoted(name)} {size}\n" for name, size in axes.items())
        self.system += (f"device {quoted(device)}\n" if device else "") + system
        self.jitted = jax.jit(function, keep_unused=True, **options)
        # Static arguments by number and by name; as in jax.jit, one determines the other if only one is given.
        names = list(inspect.signature(function).parameters)
        as_list = lambda given: [given] if isinstance(given, (int, str)) else list(given or ())
        numbers, words = as_list(options.get("static_argnums")), as_list(options.get("static_argnames"))
        self.static = {*numbers, *words}
        if not (numbers and words):
            self.static |= {*(names[n] for n in numbers if n >= 0), *(names.index(w) for w in words if w in names)}
        self.programs = {}

    def is_static(self, key, args):
        return key in self.static or isinstance(key, int) and key - len(args) in self.static

    def write(self, folder, args, kwargs):
        """Writes the input files of `partita`; returns the lowered function and the types of its results."""
        types = lambda key, x: x if self.is_static(key, args) else jax.tree.map(type_of, x)
        kwargs = {key: types(key, x) for key, x in kwargs.items()}
        args = [types(*each) for each in enumerate(args)]
        lowered = self.jitted.lower(*args, **kwargs)
        texts = {"module.mlir": lowered.as_text(debug_info=True), "schedule": self.schedule, "system": self.system}
        for name, content in texts.items():
            with open(os.path.join(folder, name), "w") as out:
                out.write(content)
        return lowered, self.jitted.eval_shape(*args, **kwargs)

    def program(self, args, kwargs):
        """Returns the Program for these arguments, and the leaves to pass to it."""
        given = [(key, x, self.is_static(key, args)) for key, x in [*enumerate(args), *sorted(kwargs.items())]]
        static = tuple((key, type(x), x) for key, x, fixed in given if fixed)
        leaves, tree = jax.tree.flatten([x for _, x, fixed in given if not fixed])
        tree = tree, tuple(key for key, _, fixed in given if not fixed)
        if any(isinstance(x, jax.core.Tracer) for x in leaves):
            raise TypeError("a partitioned function cannot run inside jit, grad or vmap; partition the outer function")
        key = (tree, static, tuple(map(type_of, leaves)))
        if key not in self.programs:
            with tempfile.TemporaryDirectory() as folder:
                self.programs[key] = Program(*self.write(folder, args, kwargs), folder, self.devices)
        return self.programs[key], leaves

    def __call__(self, *args, **kwargs):
        program, leaves = self.program(args, kwargs)
        return program(leaves)

    def metadata(self, *args, **kwargs):
        """Returns the output of `partita --json` as a dict."""
        return self.program(args, kwargs)[0].facts

    def report(self, *args, **kwargs):
        """Returns a text that reports the effect of each tactic."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, args, kwargs)
            return run_partita(folder)


def jit(function, schedule, mesh, device=None, system="", **options):
    """Accepts the options of jax.jit: donate_argnums, donate_argnames, static_argnums, static_argnames."""
    made = Partitioned(function, schedule, mesh, device, system, **options)
    return functools.update_wrapper(made, function, updated=())


def main():
    rng = np.random.default_rng(0)
    params = {"w1": rng.normal(size=(64, 256)).astype(np.float32), "w2": rng.normal(size=(256, 64)).astype(np.float32)}
    x = rng.normal(size=(32, 64)).astype(np.float32)

    def step(params, x):
        def loss(params):
            hidden = tag(jax.nn.relu(x @ params["w1"]), "hidden")
            return ((hidden @ params["w2"]) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, gradient), value

    schedule = """
        BP: manual "B" {x: 0}
        MP: manual "M" {params.w1: 1, params.w2: 0, hidden: 1}
        Z3: manual "B" {params: first_divisible_dim}
    """
    partitioned = jit(step, schedule, {"B": 4, "M": 2})
    print(partitioned.report(params, x))
    (mine, my_loss), (theirs, loss) = partitioned(params, x), step(params, x)
    difference = max(float(np.abs(mine[k] - theirs[k]).max()) for k in params)
    print("w1 is laid out as", mine["w1"].sharding.spec, "- loss", float(my_loss), "- largest difference", difference)
    if not (difference < 1e-4 and abs(my_loss - loss) < 1e-3 * abs(loss)):
        raise SystemExit("the partitioned function differs from the source")


if __name__ == "__main__":
    main()
