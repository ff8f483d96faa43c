"""A JAX function, partitioned by Partita and run on jax.devices().

    step = partita_jit.jit(f, 'BP: manual "B" {x: 0}', {"B": 4, "M": 2})
    y = step(x, w)            # arrays with NamedShardings come out; those that go in may have them
    print(step.report(x, w))  # what each tactic did

`tag(value, "h")` names an inner value of f.

Arguments are named as in f, leaves of trees by their paths: `params['w']` is "params.w". Needs the program `partita` (on the
path, or PARTITA) and as many devices as the mesh has:

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python partita_jit.py      # tries it on eight CPU devices
"""
import functools
import json
import os
import subprocess
import tempfile

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def tag(x, name):
    """x, under a name that tactics can use."""
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


class Partitioned:
    """A function of arrays of fixed shapes; for other shapes it is partitioned again."""

    def __init__(self, function, schedule, axes):
        self.function, self.schedule, self.axes = function, schedule, dict(axes)
        count = int(np.prod(list(self.axes.values())))
        if len(jax.devices()) < count:
            raise ValueError(f"the mesh has {count} devices; jax has {len(jax.devices())}")
        self.devices = jax.devices()[:count]
        self.mesh = jax.sharding.Mesh(np.array(self.devices).reshape(*self.axes.values()), tuple(self.axes))
        self.made = {}

    def write(self, folder, arguments):
        lowered = jax.jit(self.function, keep_unused=True).lower(*arguments)
        system = "".join(f'axis "{name}" {size}\n' for name, size in self.axes.items())
        for name, content in (("module.mlir", lowered.as_text(debug_info=True)), ("schedule", self.schedule), ("system", system)):
            with open(os.path.join(folder, name), "w") as out:
                out.write(content)

    def report(self, *arguments):
        """What each tactic did, as partita tells it."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, arguments)
            return run_partita(folder)

    def sharding(self, dims):
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(*[tuple(d) or None for d in dims]))

    def compile(self, arguments):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, arguments)
            facts = json.loads(run_partita(folder, "--json"))
            module = run_partita(folder, "--emit", "local")
        options = compiler.get_compile_options(num_replicas=len(self.devices), num_partitions=1,
                                               device_assignment=np.arange(len(self.devices)).reshape(-1, 1))
        with mlir.make_ir_context():
            run = self.devices[0].client.compile_and_load(ir.Module.parse(module), _jax.DeviceList(tuple(self.devices)), options)
        shardings = [[self.sharding(v["dims"]) for v in facts[kind]] for kind in ("inputs", "outputs")]
        result = jax.tree.flatten(jax.eval_shape(self.function, *arguments))
        return run, facts, *shardings, *result

    def __call__(self, *arguments):
        leaves, tree = jax.tree.flatten(arguments)
        key = (tree, tuple((np.shape(x), np.result_type(x)) for x in leaves))
        if key not in self.made:
            self.made[key] = self.compile(arguments)
        run, self.facts, inputs, outputs, types, result_tree = self.made[key]
        # One piece per device, stacked along a dimension of devices.
        flat = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(self.devices), ("devices",)),
                                          jax.sharding.PartitionSpec("devices"))
        stacked = []
        for x, s in zip(leaves, inputs):
            pieces = {p.device: p.data for p in jax.device_put(x, s).addressable_shards}
            pieces = [pieces[d] if pieces[d].ndim else pieces[d][None] for d in self.devices]
            shape = (len(self.devices) * pieces[0].shape[0],) + pieces[0].shape[1:]
            stacked.append(jax.make_array_from_single_device_arrays(shape, flat, pieces))
        results = run.execute_sharded(stacked).disassemble_into_single_device_arrays()
        return jax.tree.unflatten(result_tree, [
            jax.make_array_from_single_device_arrays(t.shape, s, pieces) for t, s, pieces in zip(types, outputs, results)])


def jit(function, schedule, mesh):
    return Partitioned(function, schedule, mesh)


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
    print("w1 lies as", mine["w1"].sharding.spec, "- loss", float(my_loss), "- largest difference of a parameter", difference)
    if not (difference < 1e-4 and abs(my_loss - loss) < 1e-3 * abs(loss)):
        raise SystemExit("the partitioned function computes something else")


if __name__ == "__main__":
    main()
