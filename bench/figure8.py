"""Prints the paper's figure 8: our time to partition a model over XLA's time to compile the program of one device.

    bench_figure8 FOLDER && python bench/figure8.py FOLDER [--only T32,GNS] [--all-schedules]

XLA compiles for its CPU backend, with 32 host devices as the mesh; nothing is run. By default the script compiles one
schedule of each model, the last of its rows. Needs jax 0.10.
"""
import argparse
import csv
import os
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=32"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir


def seconds_to_compile(path, count):
    devices = jax.devices()[:count]
    options = compiler.get_compile_options(num_replicas=count, num_partitions=1,
                                           device_assignment=np.arange(count).reshape(-1, 1))
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        began = time.perf_counter()
        devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)
        return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--all-schedules", action="store_true")
    options = parser.parse_args()
    rows = list(csv.DictReader(open(os.path.join(options.folder, "partition.csv"))))
    if not options.all_schedules:
        rows = list({row["model"]: row for row in rows}.values())
    print("| model, schedule | ops | partition | and write | XLA's compile time | partition over compile |\n|---|---|---|---|---|---|")
    for row in rows:
        if options.only and row["model"] not in options.only.split(","):
            continue
        ours, write = float(row["partition_ms"]), float(row["write_local_ms"])
        theirs = seconds_to_compile(os.path.join(options.folder, f"{row['model']}.{row['schedule']}.mlir"), int(row["devices"]))
        print(f"| {row['model']}, {row['schedule']} | {int(row['ops']):,} | {ours:.1f} ms | {write:.1f} ms | {theirs:.1f} s | "
              f"{ours / 10 / theirs:.3f} % |", flush=True)


if __name__ == "__main__":
    main()
