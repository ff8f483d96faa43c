"""Memory of a device: our estimate beside XLA's buffer assignment for the same program.

    bench_figure8 FOLDER && python bench/xla_memory.py FOLDER [--only T32,GNS] [--donated-only] [--memory-first]

XLA compiles the device-local module for its CPU backend (32 devices of the host stand for those of the mesh; nothing
is run) and says what it allocates. As in the estimate, arguments are donated whose next state is a result of that name
and type; what counts is arguments, temporaries, and results beyond those that lie where such arguments do. Beside it
stand arguments and temporaries of the module without donation: a lower figure, since XLA keeps temporaries in the
buffers of results until these are made. XLA merges equal gathers, so the estimate is that of the program in which
gathers are shared. Needs jax 0.10.

`--memory-first`: XLA's CPU backend runs a program breadth first unless told otherwise, to give its threads work, so what
needs only arguments (copies of weights in another order) lies there from the start; with this it takes the order that
needs little memory.
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
    """The name in an argument's location, or ""."""
    found = re.search(r'"(.*)"', str(argument.location))
    return found[1] if found else ""


def dictionaries(function, name):
    """One for each argument or result, by name of attribute."""
    return [{a.name: a.attr for a in ir.DictAttr(each)} for each in ir.ArrayAttr(function.attributes[name])]


def donate(module):
    """Gives the buffers of arguments to the results that have their names and types."""
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
    """XLA's statistics of a module on so many devices."""
    devices = jax.devices()[:count]
    options = compiler.get_compile_options(num_replicas=count, num_partitions=1,
                                           device_assignment=np.arange(count).reshape(-1, 1))
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        if donated:
            donate(module)
        return devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options).get_compiled_memory_stats()


def bytes_of(memory):
    """Arguments, temporaries, and results that lie nowhere else."""
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
