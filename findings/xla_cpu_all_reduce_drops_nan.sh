#!/usr/bin/env bash
# XLA on CPUs (jaxlib 0.10.2): an all_reduce by minimum or maximum over devices drops NaN.
#
# Guess before the first run: as in a `reduce` on one device, and as StableHLO defines minimum and maximum, a NaN on one
# device makes the result NaN on all.
# Seen: the collective returns the minimum or maximum of the other devices' numbers, for f32, bf16 and f16, wherever the
# NaN is. The same reduction inside of one device returns NaN.
#
# Consequence for Partita: `emulate` returns NaN, as on one device. A loss that became NaN on one of several CPU devices
# of XLA may not be noticed where only its maximum is looked at.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install jax==0.10.2 jaxlib==0.10.2 numpy==2.3.4
cat > "$folder/extremes.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

print("jaxlib", jaxlib.__version__, "devices", jax.device_count())
for t in "float32", "bfloat16", "float16":
    for name, across, inside in ("min", jax.lax.pmin, jnp.min), ("max", jax.lax.pmax, jnp.max):
        seen = []
        for place in range(4):
            x = np.array([1, 2, 3, 4], np.float32)
            x[place] = np.nan
            x = jnp.asarray(x).astype(t)
            seen.append(float(jax.pmap(lambda v: across(v, "i"), axis_name="i")(x)[0]))
        print(t, name, "of four devices, one NaN:", seen, "on one device:", float(jax.jit(inside)(x)))
PYTHON
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=4 "$folder/venv/bin/python" "$folder/extremes.py" |
  tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
jaxlib 0.10.2 devices 4
float32 min of four devices, one NaN: [2.0, 1.0, 1.0, 1.0] on one device: nan
float32 max of four devices, one NaN: [4.0, 4.0, 4.0, 3.0] on one device: nan
bfloat16 min of four devices, one NaN: [2.0, 1.0, 1.0, 1.0] on one device: nan
bfloat16 max of four devices, one NaN: [4.0, 4.0, 4.0, 3.0] on one device: nan
float16 min of four devices, one NaN: [2.0, 1.0, 1.0, 1.0] on one device: nan
float16 max of four devices, one NaN: [4.0, 4.0, 4.0, 3.0] on one device: nan
SEEN
echo "as seen"
