"""Checks that zarr, tensorstore and safetensors read the checkpoints of `write_checkpoint` bit for bit.

    checkpoint_check.py PROGRAM

Without numpy the script reports that and exits with status 77. Without one of the readers it uses the others.
"""

import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import urllib.parse
import warnings

try:
    import numpy as np
except ImportError:
    print("no numpy: nothing is checked")
    sys.exit(77)
try:
    import zarr
except ImportError:
    zarr = None
try:
    import tensorstore
except ImportError:
    tensorstore = None
try:
    import safetensors
    from safetensors import numpy as safetensors_numpy
except ImportError:
    safetensors = None
try:
    import google_crc32c
except ImportError:
    google_crc32c = None

NAMES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8",
         "<u8": "U64", "<u4": "U32", "<u2": "U16", "|u1": "U8", "|b1": "BOOL", "bf16": "BF16"}


def examples():
    """Returns (type, shape, bytes) by name; includes NaNs."""
    random = np.random.default_rng(0)
    arrays = {}
    for dtype in NAMES:
        size = np.dtype("<u2" if dtype == "bf16" else dtype).itemsize
        for shape in [(), (3,), (7, 5), (2, 3, 4), (0, 5)]:
            raw = random.integers(0, 2 if dtype == "|b1" else 256, int(np.prod(shape)) * size, dtype=np.uint8)
            name = "params.%s.%s" % (dtype.strip("<|"), "x".join(map(str, shape)))
            arrays[name] = (dtype, shape, raw.tobytes())
    for name in ["a/b", "..", "__zarr", "zarr.json", "c", "100% \"\u00e9\"", ".hidden", "x/../../y"]:
        arrays[name] = ("<f4", (2, 2), random.bytes(16))
    return arrays


def write_by_hand(path, arrays):
    """Writes a safetensors file without a package for bf16."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in arrays.items():
        header[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def need(name, example, value):
    dtype, shape, raw = example
    value = np.asarray(value)
    kind = "bf16" if value.dtype.name == "bfloat16" else value.dtype.str
    assert (kind, value.shape) == (dtype, shape), (name, kind, value.shape)
    assert np.ascontiguousarray(value).tobytes() == raw, name


def check_zarr(folder, arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(folder, mode="r")
        assert group.attrs["partita.step"] == 100 and group.attrs["partita.mesh"] == '{"a":3, "b":2, "c":2}'
        found = set()
        for path in components(folder):
            try:
                one = zarr.open_array(os.path.join(folder, path), mode="r")
            except ValueError as error:  # this version lacks the type
                assert "bfloat16" in str(error), error
                found.add(urllib.parse.unquote(path))
                continue
            need(path, arrays[one.attrs["partita.name"]], one[...])
            found.add(one.attrs["partita.name"])
        assert found == set(arrays), set(arrays) ^ found


def components(folder):
    return [each for each in os.listdir(folder) if not each.endswith(".json") or each.startswith("%")]


def check_group(folder, arrays):
    """Checks that the group lists its arrays if all types are known; zarr warns of the manifest beside them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        members = dict(zarr.open_group(folder, mode="r").members())
    assert {each.attrs["partita.name"] for each in members.values()} == set(arrays)
    assert all("partita.json" in str(each.message) for each in caught), [str(each.message) for each in caught]


def check_tensorstore(folder, arrays):
    found = set()
    for path in components(folder):
        one = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file",
                                "path": os.path.join(folder, path) + "/"}}).result()
        name = urllib.parse.unquote(path)
        need(name, arrays[name], one.read().result())
        found.add(name)
    assert found == set(arrays), set(arrays) ^ found


def check_safetensors(folder, arrays):
    with open(os.path.join(folder, "model.safetensors.index.json")) as file:
        index = json.load(file)
    assert index["metadata"]["total_size"] == sum(len(raw) for _, _, raw in arrays.values())
    assert set(index["weight_map"]) == set(arrays)
    files = sorted(set(index["weight_map"].values()))
    assert len(files) > 2 and files[0] == "model-00001-of-%05d.safetensors" % len(files)
    for file in files:
        with open(os.path.join(folder, file), "rb") as opened:
            tensors = dict(safetensors.deserialize(opened.read()))
        assert set(tensors) == {name for name, where in index["weight_map"].items() if where == file}
        for name, tensor in tensors.items():
            dtype, shape, raw = arrays[name]
            assert (tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"])) == (NAMES[dtype], shape, raw), name
        with safetensors.safe_open(os.path.join(folder, file), framework="np") as opened:
            assert opened.metadata() == {"format": "pt"}
            for name in opened.keys():
                if arrays[name][0] != "bf16":
                    need(name, arrays[name], opened.get_tensor(name))


def check_checksums(folder):
    """Compares the chunks of a zarr array with those of the manifest, in order."""
    with open(os.path.join(folder, "partita.json")) as file:
        manifest = json.load(file)
    count = 0
    for path in components(folder):
        (entry,) = [each for each in manifest["arrays"] if each["name"] == urllib.parse.unquote(path)]
        top = os.path.join(folder, path, "c")
        files = [top] if os.path.isfile(top) else glob.glob(os.path.join(glob.escape(top), "**"), recursive=True)
        files = [each for each in files if os.path.isfile(each)]
        files.sort(key=lambda each: [int(n) for n in os.path.relpath(each, top).split("/") if n != "."])
        assert len(files) == len(entry["crc32c"])
        for each, crc in zip(files, entry["crc32c"]):
            with open(each, "rb") as file:
                assert google_crc32c.value(file.read()) == crc, each
            count += 1
    assert count > 100


def main(program):
    arrays = examples()
    checked = ["our reader"]
    with tempfile.TemporaryDirectory() as top:
        at = lambda name: os.path.join(top, name)

        def written(name, arrays, form):
            write_by_hand(at(name + ".safetensors"), arrays)
            subprocess.run([program, at(name + ".safetensors"), at(name), form], check=True)
            return at(name)

        stored = written("zarr", arrays, "zarr")
        tensors = written("tensors", arrays, "safetensors")
        if zarr is not None:
            check_zarr(stored, arrays)
            known = {name: each for name, each in arrays.items() if each[0] != "bf16"}
            check_group(written("known", known, "zarr"), known)
            checked.append("zarr " + zarr.__version__)
        if tensorstore is not None:
            check_tensorstore(stored, arrays)
            checked.append("tensorstore")
        if safetensors is not None:
            check_safetensors(tensors, arrays)
            checked.append("safetensors")
        if google_crc32c is not None:
            check_checksums(stored)
            checked.append("checksums")
    print("equal:", ", ".join(checked))


main(sys.argv[1])
