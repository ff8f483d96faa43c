"""Compares the bytes that a device sends in a step: ours, and XLA's partitioner with the same shardings.

    bench_sent_bytes FOLDER && python bench/xla_bytes.py FOLDER [--only llama,T32] [--free-results]

XLA (Shardy, CPU backend; nothing is run) partitions the global program twice: with the shardings of its arguments and
results (--free-results: arguments only), and with those of tagged values, too ("inside"). XLA's collectives are counted
in the compiled module, ours in the device-local program, without and with shared gathers (`passes share_gathers`, which
our report recommends if gathers repeat). Columns: bytes sent by a device, the better of ours over each of XLA's, memory
(arguments and temporaries; ours: peak), and collectives: all-gather, all-reduce, reduce-scatter, all-to-all, permute.
Needs jax 0.10.
"""
import argparse
import csv
import os
import re

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=32"
                           " --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from sent_bytes import collectives


def without_results(text):
    """Removes the shardings of results, so that the partitioner chooses them."""
    head, results = next(line for line in text.split("\n") if "@main(" in line).split(") -> (", 1)
    free = re.sub(r'(, )?sdy\.sharding = #sdy\.sharding<@mesh, .*?>(?=[,}])', "", results)
    return text.replace(results, free)


def partitioned(text, count):
    """Compiles a module and returns the numbers of collectives, the bytes that a device sends, and its memory."""
    options = compiler.get_compile_options(num_replicas=1, num_partitions=count,
                                           device_assignment=np.arange(count).reshape(1, -1))
    devices = jax.devices()[:count]
    with mlir.make_ir_context():
        made = devices[0].client.compile_and_load(ir.Module.parse(text), _jax.DeviceList(tuple(devices)), options)
    counts, sent = collectives(made.hlo_modules()[0].to_string())
    memory = made.get_compiled_memory_stats()
    return counts, sum(sent), memory.argument_size_in_bytes + memory.temp_size_in_bytes


def over(ours, theirs):
    return f"{ours / theirs:.2f}" if theirs else ("1.00" if ours == 0 else "inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--free-results", action="store_true")
    options = parser.parse_args()
    print("| model, schedule | ours | with shared gathers | XLA | XLA, inside | ours over XLA | over XLA, inside | "
          "memory, ours / XLA | collectives, ours / XLA / inside |\n|---|---|---|---|---|---|---|---|---|")
    for row in csv.DictReader(open(os.path.join(options.folder, "sent.csv"))):
        if options.only and row["model"] not in options.only.split(","):
            continue
        name = os.path.join(options.folder, f"{row['model']}.{row['schedule']}")
        texts = [open(f"{name}{suffix}.mlir").read() for suffix in ("", ".inside")]
        if options.free_results:
            texts = [without_results(t) for t in texts]
        outside, inside = (partitioned(t, int(row["devices"])) for t in texts)
        ours, shared = int(row["bytes"]), int(row["shared_bytes"])
        best = min(ours, shared)
        peak = int(row["peak_bytes"] if best == ours else row["shared_peak_bytes"])
        counts = [row["collectives"] if best == ours else row["shared_collectives"]]
        counts += [" ".join(map(str, c[0])) for c in (outside, inside)]
        print(f"| {row['model']}, {row['schedule']} | {ours:,} | {shared:,} | {outside[1]:,.0f} | {inside[1]:,.0f} | "
              f"{over(best, outside[1])} | {over(best, inside[1])} | {over(peak, outside[2])} | {' / '.join(counts)} |",
              flush=True)


if __name__ == "__main__":
    main()
