"""Runs pipelines that write_modules wrote, and compares the results with those of the unpartitioned step. XLA compiles
each function; each mesh has its own CPU devices.

    python run_pipelines.py FOLDER
    python run_pipelines.py --write PROGRAM                   in a temporary folder

This is a minimal runtime: it knows a pipeline only from NAME.json and the modules. It drops values that a function
consumes, so that a later use of them fails. Exit status 77: JAX is missing, and nothing was run.
"""
import glob
import json
import re
import subprocess
import sys
import tempfile
import time

import run_modules  # exits without JAX
import numpy as np
import jax

ELEMENTS = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8,
            "u32": np.uint32, "u64": np.uint64, "i1": np.bool_, "bool": np.bool_}
IDENTITIES = {"add": lambda t: 0, "multiply": lambda t: 1, "and": lambda t: -1 if t != np.bool_ else True,
              "or": lambda t: 0,
              "max": lambda t: -np.inf if np.issubdtype(t, np.floating) else np.iinfo(t).min,
              "min": lambda t: np.inf if np.issubdtype(t, np.floating) else np.iinfo(t).max}


class Mesh:
    def __init__(self, data):
        self.axes, self.count = data["axes"], data["devices"]
        self.devices = jax.devices()[data["first_device"]:data["first_device"] + self.count]

    def place(self, device, name):
        """Returns the coordinate of a device along an axis or a sub-axis such as `"B":(2)4`."""
        axis, pre, size = re.fullmatch(r'"(.*?)"(?::\((\d+)\)(\d+))?', name).groups()
        for other, length in reversed(self.axes):
            at, device = device % length, device // length
            if other == axis:
                size = int(size or length)
                return at // (length // (int(pre or 1) * size)) % size, size
        return 0, 1

    def start(self, device, buffer):
        """Returns the offsets of a device's shard."""
        out = []
        for names, extent in zip(buffer["layout"], buffer["piece"]):
            number = 0
            for name in filter(None, names.split(", ")):
                at, size = self.place(device, name)
                number = number * size + at
            out.append(number * extent)
        return out

    def cut(self, whole, buffer):
        return [run_modules.piece(whole, self.start(d, buffer), buffer["piece"])[0] for d in range(self.count)]

    def joined(self, pieces, buffer):
        whole = np.zeros(buffer["shape"], pieces[0].dtype)
        for d, piece in enumerate(pieces):
            whole[tuple(slice(s, s + n) for s, n in zip(self.start(d, buffer), buffer["piece"]))] = piece
        return whole


def alike(a, b):
    return all(a[k] == b[k] for k in ("shape", "piece", "layout")) and a.get("terms") == b.get("terms")


class Run:
    def __init__(self, plan, folder, meshes):
        self.plan, self.meshes, self.held = plan, meshes, {}
        self.functions = [None] * len(plan["functions"])
        self.folder = folder

    def function(self, number, mesh):
        """Returns a function, compiled for the devices of its first mesh; all CPU devices are alike."""
        if self.functions[number] is None:
            text = open(f"{self.folder}/{number}.mlir").read()
            self.functions[number] = (run_modules.load(text, mesh.devices), mesh.devices)
        return self.functions[number]

    def taken(self, operand, mesh, buffers):
        if isinstance(operand, dict):
            return [np.array(operand["number"], np.int32)] * mesh.count
        if isinstance(operand, list):
            return [piece[operand[1]] for piece in self.held[operand[0]]]
        buffer = buffers[operand]
        if operand not in self.held and "starts_as_identity_of" in buffer:
            kind = np.dtype(ELEMENTS[buffer["element"]])
            start = np.full(buffer["piece"], IDENTITIES[buffer["starts_as_identity_of"]](kind), kind)
            self.held[operand] = [start] * mesh.count
        return self.held[operand]

    def give(self, operand, pieces, buffers):
        if isinstance(operand, list):
            number, at = operand
            if number not in self.held:
                shape = tuple(buffers[number]["piece"])
                self.held[number] = [np.zeros(shape, p.dtype) for p in pieces]
            for stack, piece in zip(self.held[number], pieces):
                stack[at] = piece
        else:
            self.held[operand] = [p.reshape(buffers[operand]["piece"]) for p in pieces]

    def __call__(self, arguments):
        buffers, last = self.plan["buffers"], {}
        for given, array in zip(self.plan["inputs"], arguments):
            buffer = buffers[given["buffer"]]
            whole = run_modules.piece(array, [0] * array.ndim, buffer["shape"])[0]
            self.held[given["buffer"]] = self.meshes[buffer["mesh"]].cut(whole, buffer)
        for step in self.plan["steps"]:
            if "copy" in step:
                self.copy(buffers, step["copy"], step["to"])
                continue
            mesh = self.meshes[step["mesh"]]
            assert last.get(step["mesh"]) == step.get("after"), "a call waits for another"
            last[step["mesh"]] = step["call"]
            executable, devices = self.function(step["function"], mesh)
            given = [self.taken(t, mesh, buffers) for t in step["takes"]]
            results = run_modules.run(executable, devices, given)
            for k in self.plan["functions"][step["function"]]["donated"]:
                if isinstance(step["takes"][k], int):
                    del self.held[step["takes"][k]]
            for operand, pieces in zip(step["gives"], results):
                self.give(operand, pieces, buffers)
        out = []
        for result in self.plan["outputs"]:
            buffer = buffers[result["buffer"]]
            whole = self.meshes[buffer["mesh"]].joined(self.held[result["buffer"]], buffer)
            out.append(whole[tuple(slice(0, n) for n in result["shape"])])
        return out

    def copy(self, buffers, source, to):
        a, b = buffers[source], buffers[to]
        pieces, from_mesh, to_mesh = self.held[source], self.meshes[a["mesh"]], self.meshes[b["mesh"]]
        if alike(a, b) and from_mesh.axes == to_mesh.axes:
            self.held[to] = pieces
        else:
            self.held[to] = to_mesh.cut(from_mesh.joined(pieces, a), b)


def check(path):
    plan, data = json.load(open(path)), np.load(path[:-5] + ".npz")
    meshes = [Mesh(m) for m in plan["meshes"]]
    run = Run(plan, path[:-5], meshes)
    results = run([run_modules.array(data, f"a{i}", each["element"]) for i, each in enumerate(plan["inputs"])])
    faults = []
    for i, (each, found) in enumerate(zip(plan["outputs"], results)):
        ours = run_modules.array(data, f"r{i}", each["element"])
        fault = run_modules.differs(ours, found)
        if fault:
            faults.append(f"{path}: result {each['name']}: {fault}: {ours.ravel()[:4]}, XLA gives {found.ravel()[:4]}")
    return faults, len(plan["steps"]), len(run.functions)


def check_all(folder):
    began, bad, paths = time.time(), 0, sorted(glob.glob(folder + "/*.json"))
    for path in paths:
        faults, steps, functions = check(path)
        bad += bool(faults)
        print(*faults[:4], f"{path}: {steps} steps, {functions} functions", sep="\n", flush=True)
    print(f"{len(paths)} pipelines, {bad} of them differ, {time.time() - began:.0f} s")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    if sys.argv[1] != "--write":
        sys.exit(check_all(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[2], folder, "pipelines"], check=True)
        sys.exit(check_all(folder))
