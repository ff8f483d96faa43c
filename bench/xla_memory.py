"""Memory of a device: our estimate beside XLA's buffer assignment for the same program.

    bench_figure8 FOLDER && python bench/xla_memory.py FOLDER [--only T32,GNS]

XLA compiles the device-local module for its CPU backend (32 devices of the host stand for those of the mesh; nothing
is run) and says what it allocates: arguments and temporaries. Results are not counted: those of a training step lie
where the states did that they replace, which the estimate knows and an XLA module without donation does not. XLA merges
equal gathers, so the estimate is that of the program in which gathers are shared. Needs jax 0.10.
"""
import argparse
import csv
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=32"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir


def memory_of(path, count):
    devices = jax.devices()[:count]
    options = compiler.get_compile_options(num_replicas=count, num_partitions=1,
                                           device_assignment=np.arange(count).reshape(-1, 1))
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        return devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options).get_compiled_memory_stats()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| model, schedule | ours, GiB | XLA's, GiB | ours over XLA's | results, GiB |\n|---|---|---|---|---|")
    for row in csv.DictReader(open(os.path.join(options.folder, "partition.csv"))):
        if options.only and row["model"] not in options.only.split(","):
            continue
        m = memory_of(os.path.join(options.folder, f"{row['model']}.{row['schedule']}.mlir"), int(row["devices"]))
        ours, theirs = int(row["peak_bytes"]) / 2**30, (m.argument_size_in_bytes + m.temp_size_in_bytes) / 2**30
        print(f"| {row['model']}, {row['schedule']} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | "
              f"{m.output_size_in_bytes / 2**30:.2f} |", flush=True)


if __name__ == "__main__":
    main()
