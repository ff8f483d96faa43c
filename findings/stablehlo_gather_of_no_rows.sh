#!/usr/bin/env bash
# StableHLO (jax 0.10.2): all_gather and reduce_scatter of an array with no rows do not compile; all_to_all, all_reduce
# and collective_permute of the same array do.
#
# Guess before the first run: collectives of empty arrays return empty arrays, as all other ops of JAX do.
# Seen: the verifier refuses a size of zero along the dimension that is gathered or scattered, and only there. The same
# collectives along another dimension of the same array compile.
#
# Consequence for Partita: a sharded batch of size 0 partitioned by rows was written as such an all_gather. Results
# without elements are now written as constants (stablehlo/write_collectives.hpp), and a program with an empty batch is
# among those that every backend runs (tests/backend_programs.hpp, "no elements").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install jax==0.10.2 jaxlib==0.10.2 numpy==2.3.4
cat > "$folder/empty.py" <<'PYTHON'
import re

import jax
import jax.numpy as jnp
import jaxlib
from jax.sharding import AxisType, PartitionSpec as P

print("jaxlib", jaxlib.__version__, "devices", jax.device_count())
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
lax = jax.lax
for name, f, before, after in [
    ("all_gather of rows", lambda x: lax.all_gather(x, "d", axis=0, tiled=True), P("d"), P()),
    ("all_gather of columns", lambda x: lax.all_gather(x, "d", axis=1, tiled=True), P(None, "d"), P()),
    ("reduce_scatter of rows", lambda x: lax.psum_scatter(x, "d", scatter_dimension=0, tiled=True), P(), P("d")),
    ("reduce_scatter of columns", lambda x: lax.psum_scatter(x, "d", scatter_dimension=1, tiled=True), P(), P(None, "d")),
    ("all_to_all", lambda x: lax.all_to_all(x, "d", 0, 1, tiled=True), P(None, "d"), P("d")),
    ("all_reduce", lambda x: lax.psum(x, "d"), P("d"), P()),
    ("permute", lambda x: lax.ppermute(x, "d", [(0, 1), (1, 0)]), P("d"), P("d")),
]:
    try:
        made = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=before, out_specs=after, check_vma=False))(jnp.zeros((0, 8)))
        print(name, "returns", made.shape)
    except ValueError as e:
        print(name, "is refused:", re.search(r"[a-z ]*size[^\n]*cannot be zero", str(e)).group(0).strip())
PYTHON
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=4 "$folder/venv/bin/python" "$folder/empty.py" |
  tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
jaxlib 0.10.2 devices 4
all_gather of rows is refused: dimension size of operand at 'all_gather_dim' cannot be zero
all_gather of columns returns (0, 8)
reduce_scatter of rows is refused: result dimension size at scatter_dimension cannot be zero
reduce_scatter of columns returns (0, 8)
all_to_all returns (0, 8)
all_reduce returns (0, 8)
permute returns (0, 8)
SEEN
echo "as seen"
