"""Compares public models (bench/jax_models.py) at small size, read from text, with XLA on one device.

    PARTITA=build/examples/partita python public_models.py [MODEL | MODEL:SCHEDULE]...

For each training step the script runs the source with `partita --run`. For each schedule on a mesh B=4, M=2 it runs the
emulated program, and the program of one device by XLA on eight devices. All runs are in float64, to which the script
converts the text, so that rounding hides no fault. The maximum difference must be below 1e-9, relative to the maximum
magnitude of a result (at least 1). Exit status 77: a package is missing.
"""
import os
import re
import sys
import tempfile
import time

# Only results are compared, so machine code is compiled quickly, without optimization.
os.environ["XLA_FLAGS"] = ("--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
                           "--xla_cpu_use_fusion_emitters=false")
os.environ["JAX_ENABLE_X64"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
try:
    import jax
    import numpy as np
    import xla_models
    for package in "flax", "haiku", "keras", "optax", "transformers":
        __import__(package)
except ImportError as e:
    print(f"skipped: {e}; cmake/test.cmake makes an environment with what is needed")
    sys.exit(77)

BOUND = 1e-9


def in_float64(module):
    """Replaces float32 by float64 in the text, also in constants that are written as bits."""
    def one(found):
        bits = np.array(int(found[1], 16), np.uint32).view(np.float32).astype(np.float64).view(np.uint64)
        return f"dense<0x{int(bits):016X}> : {found[2]}"

    def many(found):
        numbers = np.frombuffer(bytes.fromhex(found[1]), "<f4").astype("<f8")
        return f'dense<"0x{numbers.tobytes().hex().upper()}"> : {found[2]}'

    module = re.sub(r"dense<0x([0-9A-F]{8})> : (tensor<[\dx]*f32>)", one, module)
    module = re.sub(r'dense<"0x([0-9A-F]+)"> : (tensor<[\dx]*f32>)', many, module)
    return module.replace("f32", "f64")


class Model(xla_models.Model):
    def __init__(self, name):
        super().__init__(name)
        self.module = in_float64(self.module)
        self.leaves = [x.astype("float64") if x.dtype == "float32" else x for x in self.leaves]
        results = xla_models.ours(self.module, self.leaves, jax.devices()[:1])()[0]
        self.expected = [np.asarray(pieces[0]) for pieces in results]

    def run_by_partita(self, folder, *words):
        """Returns the maximum difference of the results of `partita --run`."""
        np.savez(os.path.join(folder, "in.npz"), **{f"a{i}": np.asarray(x) for i, x in enumerate(self.leaves)})
        xla_models.partita(folder, *words, "--run", "in.npz", "--out", "out.npz")
        with np.load(os.path.join(folder, "out.npz")) as made:
            return max(float(np.max(np.abs(made[f"r{i}"] - whole)) / max(1.0, np.abs(whole).max()))
                       for i, whole in enumerate(self.expected) if whole.size)

    def differences(self, schedules):
        """Yields the maximum difference of each way to run the model."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder)
            yield "evaluated", self.run_by_partita(folder)
        for schedule in schedules:
            with tempfile.TemporaryDirectory() as folder:
                self.write(folder, schedule)
                yield f"{schedule} emulated", self.run_by_partita(folder, "schedule", "system")
            local, inputs, outputs = self.partitioned(schedule)
            placed = [jax.device_put(x, s) for x, s in zip(self.leaves, inputs)]
            results = xla_models.ours(local, placed, jax.devices())()[0]
            yield f"{schedule} by XLA", xla_models.worst(results, outputs, self.expected)


def main(wanted):
    bad = 0
    for each in wanted or xla_models.jax_models.MODELS:
        name, _, schedule = each.partition(":")
        began = time.time()
        model = Model(name)
        for way, difference in model.differences([schedule] if schedule else model.schedules):
            right = difference <= BOUND  # False for NaN
            bad += not right
            print(f"{name}, {way}: {difference:.1e}{'' if right else ' DIFFERS'}, {time.time() - began:.0f} s", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
