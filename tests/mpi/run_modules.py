"""Checks that `partita --run` computes the same on every engine, on one mesh and as a pipeline: under mpirun the bytes
of the emulated run, on XLA the same numbers up to rounding.

    PARTITA=.../partita MPIRUN="mpirun -n" python3 run_modules.py FOLDER
    PARTITA=.../partita PARTITA_PJRT_PLUGIN=.../plugin.so python3 run_modules.py FOLDER
"""
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

PIPELINE = """PP: pipeline { stages: {embedding, layers_0} {layers_1, head, loss},
  batch: {x: 0, y: 0}, microbatches: 4, order: one_f_one_b }
BP: manual "B" {x: 0, y: 0}
"""


def write_inputs(module, path):
    """Writes random arrays for the arguments of the first function, in order."""
    signature = re.search(r"@\w+\((.*?)\)\s*(->|\{)", open(module).read(), re.S).group(1)
    random = numpy.random.default_rng(0)
    arrays = []
    for extents, element in re.findall(r":\s*tensor<((?:\d+x)*)(\w+)>", signature):
        assert element == "f32"
        arrays.append(random.standard_normal([int(n) for n in extents.split("x")[:-1]]).astype("f4"))
    numpy.savez(path, *arrays)


def main(folder):
    partita, mpirun = os.environ["PARTITA"], os.environ.get("MPIRUN", "").split()
    plugin = os.environ.get("PARTITA_PJRT_PLUGIN")
    with tempfile.TemporaryDirectory() as here:
        pipeline, system = f"{here}/two.spec", f"{here}/two.conf"
        open(pipeline, "w").write(PIPELINE)
        open(system, "w").write("mesh m0\naxis B 2\nmesh m1\naxis B 2\n")
        for name, files, ranks in [
            ("mlp", [f"{folder}/mlp.mlir", f"{folder}/mlp.spec", f"{folder}/mlp.conf"], (2, 4)),
            ("layers", [f"{folder}/layers.mlir", pipeline, system], (4,)),
        ]:
            write_inputs(files[0], f"{here}/{name}.npz")
            command = [partita, *files, "--run", f"{here}/{name}.npz", "--out"]
            subprocess.run([*command, f"{here}/alone.npz"], check=True)
            alone = open(f"{here}/alone.npz", "rb").read()
            if plugin:
                subprocess.run([*command, f"{here}/xla.npz", "--xla", plugin], check=True, timeout=60)
                ours, theirs = numpy.load(f"{here}/alone.npz"), numpy.load(f"{here}/xla.npz")
                close = ours.files == theirs.files and all(
                    numpy.abs(ours[k] - theirs[k]).max() <= 1e-4 * max(1, numpy.abs(ours[k]).max())
                    for k in ours.files)
                print(name, "on XLA:", "close" if close else "DIFFERS")
                if not close:
                    return 1
            for n in ranks if mpirun else ():
                subprocess.run([*mpirun, str(n), *command, f"{here}/job.npz"], check=True, timeout=60)
                same = open(f"{here}/job.npz", "rb").read() == alone
                print(name, "on", n, "ranks:", "equal" if same else "DIFFERS")
                if not same:
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
