"""Compares our estimate of a device's memory with XLA's buffer assignment for the same program.

    bench_figure8 FOLDER && python bench/xla_memory.py FOLDER [--only T32,GNS] [--donated-only] [--memory-first]

XLA compiles the device-local module for its CPU backend, with 32 host devices as the mesh, and reports its allocations;
nothing is run. As in the estimate, an argument is donated if a result of the same name and type is its next state. The
figure counts arguments, temporaries, and results that do not reuse a donated argument's buffer. The last column has the
arguments and temporaries of the module without donation. It is lower, since XLA keeps temporaries in the buffers of
results until those are computed. XLA merges equal gathers, so the estimate is that of the program with shared gathers.
Needs jax 0.10.

`--memory-first` selects the order that needs little memory. By default XLA's CPU backend runs a program breadth first,
to keep its threads busy, so ops that need only arguments (transposed copies of weights) run early and occupy memory.
"""
import argparse
import csv
import os
import re
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=32"
if "--memory-first" in sys.argv:  # flags are read when jax is imported
    os.environ["XLA_FLAGS"] += " --xla_cpu_enable_concurrency_optimized_scheduler=false"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir


def name_of(argument):
    """Returns the name in an argument's location, or ""."""
    found = re.search(r'"(.*)"', str(argument.location))
    return found[1] if found else ""


def dictionaries(function, name):
    """Returns a dictionary of attributes for each argument or result."""
    return [{a.name: a.attr for a in ir.DictAttr(each)} for each in ir.ArrayAttr(function.attributes[name])]


def donate(module):
    """Donates the buffers of arguments to the results with the same name and type."""
    main = next(o for o in module.body.operations if o.attributes["sym_name"].value == "main")
    results = {ir.StringAttr(r["jax.result_info"]).value.removeprefix("result."): k
               for k, r in enumerate(dictionaries(main, "res_attrs")) if "jax.result_info" in r}
    arguments = dictionaries(main, "arg_attrs")
    for argument, attributes in zip(main.entry_block.arguments, arguments):
        k = results.pop(name_of(argument), None)
        if k is not None and main.type.results[k] == argument.type:
            attributes["tf.aliasing_output"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), k)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in arguments])


def memory_of(path, count, donated):
    """Returns XLA's memory statistics of a module compiled for `count` devices."""
    devices = jax.devices()[:count]
    options = compiler.get_compile_options(num_replicas=count, num_partitions=1,
                                           device_assignment=np.arange(count).reshape(-1, 1))
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        if donated:
            donate(module)
        return devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options).get_compiled_memory_stats()


def bytes_of(memory):
    """Returns the bytes of arguments, temporaries, and results with their own buffers."""
    return (memory.argument_size_in_bytes + memory.temp_size_in_bytes + memory.output_size_in_bytes
            - memory.alias_size_in_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--donated-only", action="store_true", help="half the time")
    parser.add_argument("--memory-first", action="store_true", help="the order that needs little memory")
    options = parser.parse_args()
    print("| model, schedule | ours, GiB | XLA's, GiB | ours over XLA's | XLA's without donation, results not counted |\n"
          "|---|---|---|---|---|")
    for row in csv.DictReader(open(os.path.join(options.folder, "partition.csv"))):
        if options.only and row["model"] not in options.only.split(","):
            continue
        path = os.path.join(options.folder, f"{row['model']}.{row['schedule']}.mlir")
        ours, theirs = int(row["peak_bytes"]) / 2**30, bytes_of(memory_of(path, int(row["devices"]), True)) / 2**30
        kept = ""
        if not options.donated_only:
            m = memory_of(path, int(row["devices"]), False)
            kept = f"{(m.argument_size_in_bytes + m.temp_size_in_bytes) / 2**30:.2f}"
        print(f"| {row['model']}, {row['schedule']} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {kept} |",
              flush=True)


if __name__ == "__main__":
    main()
