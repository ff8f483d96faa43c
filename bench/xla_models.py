"""Compares public models on eight CPU devices: our device-local modules, and the output of XLA's own partitioner.

    PARTITA=build/examples/partita python bench/xla_models.py [--models gpt2,lstm] [--schedules BP,BP+Z3]
                                                              [--full [--batch 8] [--length 128]]

For each model (bench/jax_models.py) and schedule, on a mesh B=4, M=2: JAX lowers the training step; `partita` writes
the program of one device, which XLA compiles as eight replicas; JAX's jit partitions the same step with the shardings
of arguments and results that `partita --json` reports (--free-results: arguments only). The columns are

    ours, XLA's   collectives in the compiled module, counted once per iteration in loop bodies: all-gather, all-reduce,
                  reduce-scatter, all-to-all, permute
    bytes         bytes that a device sends, ours over XLA's, counted as in sent_bytes.py
    time          ours over XLA's, the median over pairs of runs: of the seconds until all results are ready, and of the
                  CPU seconds of all threads, which other programs disturb less
    worst         the maximum difference from the step on one device, ours and XLA's, relative to the maximum magnitude
                  of the result (at least 1)

--keep DIR keeps modules and compiled HLO. --no-time compiles and runs once.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
import jax
import jax_models
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax
from jaxlib.mlir import ir
from sent_bytes import collectives

AXES = {"B": 4, "M": 2}


# ---- Running -----------------------------------------------------------------------------------

class Run:
    """An executable and its arguments on their devices."""

    def __init__(self, executable, arguments):
        self.executable, self.arguments = executable, arguments
        self.hlo = executable.hlo_modules()[0].to_string()

    def __call__(self):
        """Returns the shards of each result, and the wall-clock and CPU seconds until all were ready."""
        began = np.array([time.perf_counter(), time.process_time()])
        results = self.executable.execute_sharded(self.arguments).disassemble_into_single_device_arrays()
        for pieces in results:
            for piece in pieces:
                piece.block_until_ready()
        return results, np.array([time.perf_counter(), time.process_time()]) - began


def ours(module, arguments, devices):
    options = compiler.get_compile_options(num_replicas=len(devices), num_partitions=1,
                                           device_assignment=np.arange(len(devices)).reshape(-1, 1))
    with mlir.make_ir_context():
        made = devices[0].client.compile_and_load(ir.Module.parse(module), _jax.DeviceList(tuple(devices)), options)
    flat = NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices"))
    stacked = []
    for x in arguments:
        pieces = {p.device: p.data for p in x.addressable_shards}
        pieces = [pieces[d] if pieces[d].ndim else pieces[d][None] for d in devices]
        shape = (len(devices) * pieces[0].shape[0],) + pieces[0].shape[1:]
        stacked.append(jax.make_array_from_single_device_arrays(shape, flat, pieces))
    return Run(made, stacked)


def worst(results, shardings, expected):
    """Returns the largest relative difference of any device's shard from the step on one device."""
    greatest = 0.0
    for pieces, sharding, whole in zip(results, shardings, expected):
        scale = max(1.0, float(np.abs(whole).max())) if whole.size else 1.0
        for device, index in sharding.devices_indices_map(whole.shape).items():
            mine = np.asarray(next(p for p in pieces if list(p.devices())[0] == device))
            difference = np.abs(mine.astype(np.float64).reshape(whole[index].shape) - whole[index])
            greatest = max(greatest, float(difference.max()) / scale if difference.size else 0.0)
            if np.isnan(difference).any():
                return float("nan")
    return greatest


def partita(folder, *words):
    command = [os.environ.get("PARTITA", "partita"), "module.mlir", *words, "--names", "names"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if made.returncode != 0:
        raise SystemExit(made.stderr.strip())
    return made.stdout


class Model:
    """A training step as JAX computes it on one device, and its module as text."""

    def __init__(self, name, *size):
        self.name = name
        self.step, self.arguments, self.schedules = jax_models.MODELS[name](*(size or [False]))
        self.function = lambda a: self.step(**a)
        self.leaves = jax.tree.leaves(self.arguments)
        lowered = jax.jit(self.function, keep_unused=True).lower(self.arguments)
        self.module = lowered.as_text()
        self.names = [jax.tree_util.keystr(path, simple=True, separator=".")
                      for path, _ in jax.tree_util.tree_leaves_with_path(self.arguments)]

    def write(self, folder, schedule=None):
        """Writes the input of `partita`: the module, the names and, given a schedule, the schedule and the mesh."""
        texts = {"module.mlir": self.module, "names": "\n".join(self.names) + "\n"}
        if schedule:
            texts |= {"schedule": self.schedules[schedule], "system": "".join(f'axis "{a}" {n}\n' for a, n in AXES.items())}
        for name, content in texts.items():
            with open(os.path.join(folder, name), "w") as out:
                out.write(content)

    def partitioned(self, schedule):
        """Returns the program of one device, and the shardings of arguments and of results."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, schedule)
            facts = json.loads(partita(folder, "schedule", "system", "--json"))
            local = partita(folder, "schedule", "system", "--emit", "local")
        mesh = Mesh(np.array(jax.devices()).reshape(*AXES.values()), tuple(AXES))
        return local, *[[NamedSharding(mesh, PartitionSpec(*[tuple(d) or None for d in v["dims"]])) for v in facts[kind]]
                        for kind in ("inputs", "outputs")]

    def both(self, schedule, options):
        """Returns our run, XLA's run, and the shardings of the results of each."""
        local, inputs, outputs = self.partitioned(schedule)
        placed = [jax.device_put(x, s) for x, s in zip(self.leaves, inputs)]
        tree = jax.tree.structure(self.arguments)
        results = jax.tree.structure(jax.eval_shape(self.function, self.arguments))
        wanted = {} if options.free_results else {"out_shardings": jax.tree.unflatten(results, outputs)}
        theirs = jax.jit(self.function, keep_unused=True, in_shardings=(jax.tree.unflatten(tree, inputs),), **wanted)
        compiled = theirs.lower(self.arguments).compile()
        theirs_out = jax.tree.leaves(compiled.output_shardings)
        runs = ours(local, placed, jax.devices()), Run(compiled.runtime_executable(), placed)
        if options.keep:
            for suffix, content in (("local.mlir", local), ("ours.hlo", runs[0].hlo), ("xla.hlo", runs[1].hlo)):
                with open(os.path.join(options.keep, f"{self.name}.{schedule}.{suffix}"), "w") as out:
                    out.write(content)
        return *runs, outputs, theirs_out


def measure(model, schedule, expected, options):
    mine, theirs, my_out, their_out = model.both(schedule, options)
    off = [worst(run()[0], out, expected) for run, out in ((mine, my_out), (theirs, their_out))]
    (my_count, my_bytes), (their_count, their_bytes) = collectives(mine.hlo), collectives(theirs.hlo)
    ratios, seconds = [], []
    began = time.perf_counter()
    while not options.no_time and (len(ratios) < 7 or time.perf_counter() - began < options.seconds):
        in_turn = (mine, theirs) if len(ratios) % 2 else (theirs, mine)
        taken = {run: run()[1] for run in in_turn}
        ratios.append(taken[mine] / taken[theirs])
        seconds.append(taken[mine][0])
    timed = "{:.2f}, {:.2f}".format(*np.median(ratios, axis=0)) + f" ({1e3 * np.median(seconds):.1f} ms)" if ratios else "-"
    share = f"{sum(my_bytes) / sum(their_bytes):.2f}" if sum(their_bytes) else "-"
    print(f"| {model.name}, {schedule} | {' '.join(map(str, my_count))} | {' '.join(map(str, their_count))} | "
          f"{sum(my_bytes) / 1e3:,.0f} / {sum(their_bytes) / 1e3:,.0f} kB = {share} | {timed} | "
          f"{off[0]:.1e} / {off[1]:.1e} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(jax_models.MODELS))
    parser.add_argument("--schedules", default="")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--batch", type=int, help="number of examples, if the default needs too much memory")
    parser.add_argument("--length", type=int, help="tokens per example, or pixels per side")
    parser.add_argument("--free-results", action="store_true")
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--seconds", type=float, default=10, help="minimum duration of the paired runs")
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    print("| model, schedule | ours | XLA's | bytes | time | worst |\n|---|---|---|---|---|---|", flush=True)
    for name in options.models.split(","):
        model = Model(name, options.full, options.batch, options.length)
        expected = [np.asarray(r) for r in jax.tree.leaves(jax.jit(model.function)(model.arguments))]
        for schedule in model.schedules:
            if not options.schedules or schedule in options.schedules.split(","):
                measure(model, schedule, expected, options)


if __name__ == "__main__":
    main()
