#!/usr/bin/env bash
# zarr-python 3.1.6 with tensorstore 0.1.86: one bfloat16 array in a group hides all others from listing.
#
# Guess before the first run: zarr-python has no bfloat16, so opening that array fails, and the rest of the group works:
# `len(group)`, `"name" in group`, the names of its arrays and of its subgroups.
# Seen: tensorstore writes bfloat16 into a zarr v3 group without a word, as the specification's data type of that name.
# zarr-python then still opens a float32 array of the group by its name, but everything that lists the group raises
# ValueError: its length, the names of arrays, even the names of subgroups, and the question whether the bfloat16 array
# is there. Its metadata cannot be consolidated.
#
# Consequence for Partita: checkpoints have no consolidated metadata, and the README of `backend/` says what zarr-python
# can do with a checkpoint that has bfloat16.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install zarr==3.1.6 tensorstore==0.1.86 numpy==2.3.4
cat > "$folder/list.py" <<'PYTHON'
import sys
import tensorstore
import zarr

print("zarr", zarr.__version__)
root = sys.argv[1] + "/group"
group = zarr.create_group(root, zarr_format=3)
group.create_array("weights", shape=(4,), dtype="float32")[:] = 1
group.create_group("optimizer")
tensorstore.open({
    "driver": "zarr3",
    "kvstore": {"driver": "file", "path": root + "/half/"},
    "metadata": {"shape": [4], "data_type": "bfloat16"},
}, create=True).result().write(2).result()

group = zarr.open_group(root, mode="r")
for name, look in [
    ("weights", lambda: float(group["weights"][0])),
    ("half", lambda: group["half"]),
    ("'half' in group", lambda: "half" in group),
    ("len", lambda: len(group)),
    ("names of arrays", lambda: list(group.array_keys())),
    ("names of subgroups", lambda: list(group.group_keys())),
    ("consolidate", lambda: zarr.consolidate_metadata(root)),
]:
    try:
        print(name + ":", look())
    except ValueError as e:
        print(name + ": ValueError:", e)
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/list.py" "$folder" | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
zarr 3.1.6
weights: 1.0
half: ValueError: No Zarr data type found that matches 'bfloat16'
'half' in group: ValueError: No Zarr data type found that matches 'bfloat16'
len: ValueError: No Zarr data type found that matches 'bfloat16'
names of arrays: ValueError: No Zarr data type found that matches 'bfloat16'
names of subgroups: ValueError: No Zarr data type found that matches 'bfloat16'
consolidate: ValueError: No Zarr data type found that matches 'bfloat16'
SEEN
echo "as seen"
