"""Runs the modules that write_modules wrote under XLA and compares their results with ours.

    python run_modules.py FOLDER
    python run_modules.py --write PROGRAM ops|collectives|random|models     in a temporary folder

A module with several replicas runs on as many CPU devices, each with its shards. XLA partitions a global module with
shardings, and then runs it likewise. Integers must be equal. The difference of floating-point numbers, relative to the
maximum magnitude of the result (at least 1), must be within the rounding of a sum of some hundred numbers in another
order. Prints the modules that differ and the number of modules. Exit status 77: JAX is missing, and nothing was run.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

# Only results are compared, so machine code is compiled quickly, without optimization.
os.environ["XLA_FLAGS"] = ("--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
                           "--xla_llvm_disable_expensive_passes=true")
if "models" in sys.argv:  # saves two thirds of the time; but -1 to a negative power is 0 with it
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    import ml_dtypes
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
except ImportError as e:
    print(f"skipped: {e}; cmake/test.cmake makes an environment with jax")
    sys.exit(77)

jax.config.update("jax_enable_x64", True)
BOUND = {"float64": 1e-9, "float32": 3e-5, "float16": 2e-2, "bfloat16": 1e-1}


def load(text, devices, partitioned=False):
    assignment = np.array([d.id for d in devices]).reshape((1, -1) if partitioned else (-1, 1))
    options = compiler.get_compile_options(num_replicas=assignment.shape[0], num_partitions=assignment.shape[1],
                                           device_assignment=assignment)
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        return devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)


def run(executable, devices, arguments):
    """Runs an executable. Arguments and results are lists of shards, one per device."""
    mesh = jax.sharding.Mesh(np.array(devices), ("devices",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("devices"))
    given = []
    for pieces in arguments:
        placed = [jax.device_put(p if p.ndim else p[None], d) for p, d in zip(pieces, devices)]
        shape = (len(devices) * placed[0].shape[0],) + placed[0].shape[1:]
        given.append(jax.make_array_from_single_device_arrays(shape, sharding, placed))
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [[np.asarray(p) for p in r] for r in results]


def types_of(signature):
    """Returns the shapes and element types in the text of a list of arguments or results."""
    return [(tuple(int(n) for n in dims.split("x")[:-1]), element)
            for dims, element in re.findall(r"tensor<((?:\d+x)*)(\w+)>", signature)]


def array(data, name, element):
    a = data[name]
    return a.view(ml_dtypes.bfloat16) if element == "bf16" and a.dtype != ml_dtypes.bfloat16 else a


def piece(whole, start, shape):
    """Returns a device's shard, padded with zeros, and the slices of it that are not padding."""
    out = np.zeros(shape, whole.dtype)
    there = tuple(slice(s, min(s + n, e)) for s, n, e in zip(start, shape, whole.shape))
    part = whole[there]
    out[tuple(slice(0, n) for n in part.shape)] = part
    return out, tuple(slice(0, n) for n in part.shape)


def differs(ours, xlas):
    if ours.dtype != xlas.dtype or ours.shape != xlas.shape:
        return f"{ours.dtype}{ours.shape} and {xlas.dtype}{xlas.shape}"
    if ours.dtype.kind in "iub":
        return "" if (ours == xlas).all() else "numbers"
    a, b = ours.astype(np.float64), xlas.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        finite = np.abs(a[np.isfinite(a)])
        scale = max(1.0, finite.max()) if finite.size else 1.0
        worst = np.where(same, 0, np.abs(a - b) / scale)
    return "" if (worst <= BOUND[ours.dtype.name]).all() else f"by {np.nanmax(worst)} of the greatest"


def check(path):
    text = open(path).read()
    data = np.load(path[:-5] + ".npz")
    count = lambda what: int((re.search(rf"num_{what} = (\d+)", text) or [0, 1])[1])
    partitioned = count("partitions") > 1
    devices = jax.devices()[:count("replicas") * count("partitions")]
    signature = next(line for line in text.split("\n") if "@main(" in line)
    inputs, outputs = [types_of(s) for s in signature.split(") -> ", 1)]
    names = re.findall(r'jax.result_info = "([^"]*)"', signature)
    starts = lambda name, i, rank: data[f"s{name}{i}"] if f"s{name}{i}" in data else np.zeros((1, rank), np.int64)
    local = lambda name, i, shape: tuple(data[f"t{name}{i}"]) if partitioned else shape
    arguments = []
    for i, (shape, element) in enumerate(inputs):
        whole = array(data, f"a{i}", element)
        shape = local("a", i, shape)
        arguments.append([piece(whole, s, shape)[0] for s in starts("a", i, len(shape))])
    faults = []
    results = run(load(text, devices, partitioned), devices, arguments)
    for i, (shape, element) in enumerate(outputs):
        whole = array(data, f"r{i}", element)
        shape = local("r", i, shape)
        for device, start in enumerate(starts("r", i, len(shape))):
            ours, there = piece(whole, start, shape)
            xlas = results[i][device]
            fault = differs(ours[there], xlas[there] if xlas.ndim == len(shape) else xlas)
            if fault:
                faults.append(f"{path}: result {i} {names[i] if i < len(names) else ''} on device {device}: "
                              f"{fault}: {ours.ravel()[:6]}, XLA gives {xlas.ravel()[:6]}")
                break
    return faults


def check_all(folder):
    began, bad, paths = time.time(), 0, sorted(glob.glob(folder + "/*.mlir"))
    for path in paths:
        try:
            faults = check(path)
        except Exception as e:  # XLA refuses the module
            faults = [f"{path}: {' '.join(str(e).split())[:400]}"]
        bad += bool(faults)
        print(*faults, sep="\n", end="\n" if faults else "", flush=True)
    print(f"{len(paths)} modules, {bad} of them differ, {time.time() - began:.0f} s")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    if sys.argv[1] != "--write":
        sys.exit(check_all(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[2], folder, *sys.argv[3:]], check=True)
        sys.exit(check_all(folder))
