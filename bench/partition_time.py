"""Compares the time to partition public models at full size: ours, from text to text, and XLA's partitioner.

    PARTITA=build/bench/examples/partita python bench/partition_time.py [--models gpt2] [--schedule BP+MP+Z3] [--small]

Ours is the whole of `partita MODULE SCHEDULE SYSTEM --emit local`: reading, all tactics, writing; the best of five. For
XLA the script reads the times that XLA logs for its passes while it compiles the same module with the same shardings
(--emit annotated) for eight CPU devices. It prints propagation of shardings (shardy-xla), partitioning
(spmd-partitioning), and all passes of the pipelines for several partitions, which include clean-up before and after.
Nothing is run.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

AXES = {"B": 4, "M": 2}


def compile_annotated(path):
    """Compiles a module in its own process, which logs passes."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
    devices = jax.devices()
    options = compiler.get_compile_options(num_replicas=1, num_partitions=8, device_assignment=np.arange(8).reshape(1, 8))
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        began = time.perf_counter()
        devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)
        print(f"compiled in {time.perf_counter() - began:.2f} s")


def passes(log):
    """Returns the milliseconds of each (pipeline, pass)."""
    found, pipeline = {}, ""
    for line in log.split("\n"):
        begins = re.search(r"Running HLO pass pipeline on module \S+: (\S+)", line)
        pipeline = begins[1] if begins else pipeline
        took = re.search(r"HLO pass: (\S+) time: .*?\((\d+) us\)", line)
        if took:
            found[pipeline, took[1]] = found.get((pipeline, took[1]), 0) + int(took[2]) / 1e3
    return found


def measure(name, schedule, small):
    import jax
    import jax_models
    step, arguments, schedules = jax_models.MODELS[name](not small)
    names = [jax.tree_util.keystr(path, simple=True, separator=".")
             for path, _ in jax.tree_util.tree_leaves_with_path(arguments)]
    with tempfile.TemporaryDirectory() as folder:
        lowered = jax.jit(lambda a: step(**a), keep_unused=True).lower(arguments)
        for file, content in (("module.mlir", lowered.as_text()), ("schedule", schedules[schedule]),
                              ("names", "\n".join(names) + "\n"),
                              ("system", "".join(f'axis "{a}" {n}\n' for a, n in AXES.items()))):
            with open(os.path.join(folder, file), "w") as out:
                out.write(content)

        def partita(form):
            command = [os.environ.get("PARTITA", "partita"), "module.mlir", "schedule", "system", "--names", "names",
                       "--emit", form, "--out", form + ".mlir"]
            began = time.perf_counter()
            subprocess.run(command, cwd=folder, check=True)
            return time.perf_counter() - began

        ours = min(partita("local") for _ in range(5))
        partita("annotated")
        logging = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "hlo_pass_pipeline=1"}
        made = subprocess.run([sys.executable, __file__, "--compile", os.path.join(folder, "annotated.mlir")],
                              capture_output=True, text=True, env=logging)
    if made.returncode != 0:
        raise SystemExit(made.stderr[-2000:])
    took = passes(made.stderr)
    within = {key: ms for key, ms in took.items() if "spmd" in key[0]}
    of = lambda name: sum(ms for key, ms in within.items() if key[1] == name) / 1e3
    print(f"{name}, {schedule}: ours, text to text {ours:.2f} s; XLA: propagation {of('shardy-xla'):.2f} s, partitioning "
          f"{of('spmd-partitioning'):.2f} s, all passes for it {sum(within.values()) / 1e3:.2f} s; {made.stdout.strip()}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt2")
    parser.add_argument("--schedule", default="BP+MP+Z3")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        return compile_annotated(options.compile)
    for name in options.models.split(","):
        measure(name, options.schedule, options.small)


if __name__ == "__main__":
    main()
