#!/usr/bin/env bash
# JAX 0.10.2: `tf.aliasing_output` of a donated argument may name the result of another state.
#
# Guess before the first run: for `return optimizer_state, parameters`, the donated parameters are paired with the new
# parameters, or with nothing, since the function says nothing of which is which.
# Seen: donated arguments and results are paired by shape and element type alone, in their order. So the parameter's
# attribute names the new momentum, and the momentum's the new parameter. The memory is reused correctly; only whoever
# reads the attribute as "this is the next value of that argument" is misled.
#
# Consequence for Partita: results are tied to arguments by names and by how they are computed first, and by these
# attributes last (`stablehlo/states.hpp`).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install jax==0.10.2 jaxlib==0.10.2 numpy==2.3.4
cat > "$folder/step.py" <<'PYTHON'
import re
import jax
import jax.numpy as jnp

print("jax", jax.__version__)


def step(parameter, momentum, x):
    gradient = jax.grad(lambda w: jnp.sum((x @ w) ** 2))(parameter)
    momentum = 0.9 * momentum + gradient
    return {"1 momentum": momentum, "2 parameter": parameter - 0.1 * momentum}


w = jnp.ones((4, 4))
text = jax.jit(step, donate_argnums=(0, 1)).lower(w, w, w).as_text()
main = next(line for line in text.splitlines() if "@main" in line)
results = re.findall(r'jax.result_info = "([^"]*)"', main)
for name, number in zip(("parameter", "momentum"), re.findall(r"tf.aliasing_output = (\d+)", main)):
    print("donated", name, "is paired with", results[int(number)])
PYTHON
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/step.py" | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
jax 0.10.2
donated parameter is paired with result['1 momentum']
donated momentum is paired with result['2 parameter']
SEEN
echo "as seen"
