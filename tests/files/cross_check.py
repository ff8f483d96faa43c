"""Checks that files of numpy and safetensors, copied by `copy_arrays`, are read back bit for bit.

    cross_check.py PROGRAM

Without numpy the script reports that and exits with status 77. Without safetensors or ml_dtypes it checks the rest.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("no numpy: nothing is checked")
    sys.exit(77)
try:
    from safetensors import numpy as safetensors
except ImportError:
    safetensors = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
         "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "BF16": "<u2"}


def read_by_hand(path):
    """Reads a safetensors file as its format page describes it: (type, shape, bytes) by name."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size].decode("utf-8"))
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = (entry["dtype"], tuple(entry["shape"]), data[8 + size + begin : 8 + size + end])
        assert (8 + size + begin) % np.dtype(TYPES[entry["dtype"]]).itemsize == 0, "elements are aligned"
    return found


def examples():
    random = np.random.default_rng(0)
    arrays = {}
    for dtype in TYPES.values():
        for shape in [(), (3,), (2, 3, 4), (0, 5)]:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            raw = random.integers(0, 2 if dtype == "|b1" else 256, size, dtype=np.uint8).tobytes()
            name = "params.%s.%s" % (dtype.strip("<|"), "x".join(map(str, shape)))
            arrays[name] = np.frombuffer(raw, dtype).reshape(shape)
    arrays["with \"quotes\", a\ttab and \u00e9"] = np.array(2.5, "<f4")
    return arrays


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def main(program):
    def copied(source, target):
        subprocess.run([program, source, target], check=True)
        return target

    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        arrays = examples()
        np.savez(at("a.npz"), **arrays)
        back = np.load(copied(at("a.npz"), at("b.npz")))
        assert set(back) == set(arrays) and all(equal(back[k], v) for k, v in arrays.items()), "npz"
        columns = np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4))
        np.save(at("c.npy"), columns)
        assert equal(np.load(copied(at("c.npy"), at("d.npy"))), np.ascontiguousarray(columns)), "npy"
        by_hand = read_by_hand(copied(at("a.npz"), at("e.safetensors")))
        for name, value in arrays.items():
            kind, shape, raw = by_hand[name]
            assert (TYPES[kind], shape, raw) == (value.dtype.str, value.shape, value.tobytes()), name
        checked = ["numpy", "the format by hand"]
        if safetensors is not None:
            with open(at("e.safetensors"), "rb") as file:
                back = safetensors.load(file.read())
            assert all(equal(back[k], v) for k, v in arrays.items()), "what we write, read by safetensors"
            safetensors.save_file(arrays, at("f.safetensors"), metadata={"format": "np", "by": "\u00e9\n"})
            back = np.load(copied(at("f.safetensors"), at("g.npz")))
            assert all(equal(back[k], v) for k, v in arrays.items()), "what safetensors writes"
            checked.append("safetensors")
        if ml_dtypes is not None:
            half = np.arange(-4, 4, dtype="f4").astype(ml_dtypes.bfloat16)
            np.savez(at("h.npz"), half=half)
            kind, shape, raw = read_by_hand(copied(at("h.npz"), at("i.safetensors")))["half"]
            assert (kind, shape, raw) == ("BF16", (8,), half.tobytes()), "bfloat16"
            checked.append("ml_dtypes")
            if safetensors is not None:
                safetensors.save_file({"half": half}, at("j.safetensors"))
                back = safetensors.load_file(copied(at("j.safetensors"), at("k.safetensors")))
                assert equal(back["half"], half), "bfloat16 of safetensors"
        print("equal:", ", ".join(checked))


main(sys.argv[1])
