#!/usr/bin/env bash
# XLA on CPUs (jaxlib 0.10.2): a `while` over an unsigned counter that decreases runs the wrong number of times.
#
# Guess before the first run: XLA evaluates the loop as StableHLO defines it, so a counter of ui8 wraps from 0 to 255.
# Seen: where start, bound and step are constants, XLA replaces the loop by a known trip count of 1. The step is read as a
# negative number and the counter as an unsigned one. It enters even loops whose condition is false at the start. Signed
# counters are right, and so is an unsigned one that starts at an argument.
#
# Consequence for Partita: XLA is no oracle for such loops. Partita's trip counts follow the definition.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install jax==0.10.2 jaxlib==0.10.2 numpy==2.3.4
cat > "$folder/loops.py" <<'PYTHON'
import operator
import jax
import jaxlib
import numpy as np

print("jaxlib", jaxlib.__version__)


def by_xla(t, start, holds, bound, step, constant):
    def loop(i):
        return jax.lax.while_loop(lambda s: holds(s[0], t(bound)), lambda s: (s[0] + t(step), s[1] + 1), (i, 0))
    i, n = jax.jit(lambda: loop(t(start)))() if constant else jax.jit(loop)(t(start))
    return int(i), int(n)


def by_definition(t, start, holds, bound, step):
    i, n = np.array(start, t), 0
    while holds(i, np.array(bound, t)):
        i, n = (i + np.array(step, t)).astype(t), n + 1
    return int(i), n


for t, start, holds, bound, step in [(np.uint8, 5, operator.lt, 200, 255), (np.uint8, 149, operator.le, 4, 255),
                                     (np.int8, 5, operator.gt, -100, -1)]:
    print(t.__name__, start, holds.__name__, bound, "XLA", by_xla(t, start, holds, bound, step, True),
          "from an argument", by_xla(t, start, holds, bound, step, False),
          "definition", by_definition(t, start, holds, bound, step))
PYTHON
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/loops.py" | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
jaxlib 0.10.2
uint8 5 lt 200 XLA (4, 1) from an argument (255, 6) definition (255, 6)
uint8 149 le 4 XLA (148, 1) from an argument (149, 0) definition (149, 0)
int8 5 gt -100 XLA (-100, 105) from an argument (-100, 105) definition (-100, 105)
SEEN
echo "as seen"
