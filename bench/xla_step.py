"""Times the training steps of bench_xla_step beside the same modules run by JAX in Python, on eight CPU devices.

    BENCH=build/bench/bench/bench_xla_step PARTITA_PJRT_PLUGIN=.../xla_cpu_pjrt.so python bench/xla_step.py

Both run the same device-local module with the same donations and read the loss of each step. Short rounds alternate
between two running processes, so that both meet the same load of other programs. The figures are the ratio of the
medians and that of the fastest rounds. The engines differ in version: a plugin from PyPI there, jaxlib's own XLA here.
"""
import os
import re
import statistics
import subprocess
import tempfile
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir

TYPES = {"f32": np.float32, "i32": np.int32}


class Step:
    """A module of a training step; its donated arguments are replaced by the results that reuse their memory."""

    def __init__(self, text):
        devices = jax.devices()
        main = re.search(r"func\.func public @main\((.*?)\)\s*->\s*\((.*?)\)\s*\{\n", text, re.S)
        arguments, results = main.group(1), main.group(2)
        self.alias = {}
        types = []
        for i, one in enumerate(re.split(r",\s*(?=%)", arguments)):
            dims, element = re.search(r"tensor<((?:\d+x)*)(\w+)>", one).groups()
            types.append((tuple(int(n) for n in dims.split("x")[:-1]), TYPES[element]))
            if alias := re.search(r"tf\.aliasing_output = (\d+)", one):
                self.alias[i] = int(alias.group(1))
        names = re.findall(r'jax\.result_info = "([^"]*)"', results)
        self.loss = next(i for i, n in enumerate(names) if n.endswith("loss"))
        options = compiler.get_compile_options(num_replicas=8, num_partitions=1,
                                               device_assignment=np.arange(8).reshape(8, 1))
        with mlir.make_ir_context():
            self.run = devices[0].client.compile_and_load(ir.Module.parse(text), _jax.DeviceList(tuple(devices)), options)
        mesh = jax.sharding.Mesh(np.array(devices), ("devices",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("devices"))
        random = np.random.default_rng(0)
        self.state = []
        for shape, element in types:
            value = (np.zeros(shape, element) if element == np.int32
                     else random.standard_normal(shape).astype(element) * 0.05)
            shards = [jax.device_put(value if value.ndim else value[None], d) for d in devices]
            whole = (8 * shards[0].shape[0],) + shards[0].shape[1:]
            self.state.append(jax.make_array_from_single_device_arrays(whole, sharding, shards))

    def __call__(self):
        results = self.run.execute_sharded(self.state).disassemble_into_single_device_arrays()
        for argument, result in self.alias.items():
            self.state[argument] = Shards(results[result])
        return np.asarray(results[self.loss][0])


def Shards(shards):
    mesh = jax.sharding.Mesh(np.array([s.device for s in shards]), ("devices",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("devices"))
    shape = shards[0].shape
    if not shape:
        return jax.make_array_from_single_device_arrays((), jax.sharding.NamedSharding(
            mesh, jax.sharding.PartitionSpec()), shards)
    return jax.make_array_from_single_device_arrays((8 * shape[0],) + shape[1:], sharding, shards)


def main():
    bench = os.environ["BENCH"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([bench, "--write", folder], check=True)
        for name, steps, rounds in ("demo", 5, 40), ("wider", 1, 25):
            step = Step(open(f"{folder}/{name}.mlir").read())
            for _ in range(3):
                step()
            ours, theirs = [], []
            other = subprocess.Popen([bench, name, str(steps)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(rounds):
                other.stdin.write("\n")
                other.stdin.flush()
                ours.append(float(other.stdout.readline()))
                start = time.perf_counter()
                for _ in range(steps):
                    step()
                theirs.append(1e3 * (time.perf_counter() - start) / steps)
            other.stdin.close()
            other.wait()
            for what, of in ("median", statistics.median), ("fastest", min):
                print(f"{name}, {what}: {of(ours):.2f} ms a step, JAX {of(theirs):.2f} ms, "
                      f"ratio {of(ours) / of(theirs):.2f}", flush=True)
    call = float(subprocess.run([bench, "call"], check=True, capture_output=True, text=True).stdout)
    print(f"a call with 100 arguments that does next to nothing: {call:.1f} us")


if __name__ == "__main__":
    main()
