"""Counts the collectives of a module that XLA compiled, by kind, and the bytes that a device sends for them.

Collectives in loop bodies count once per iteration. In a group of n a device sends (n-1)/n of the result of an
all-gather and of the operand of a reduce-scatter or all-to-all, 2(n-1)/n of an all-reduce, and all of a permute.
"""
import collections as counting
import re

import jax
import numpy as np

BITS = {"pred": 8, "bf16": 16}  # for other types, the number in the name
KINDS = ["all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"]


def bytes_of(types):
    return sum(int(np.prod([int(n) for n in dims.split(",") if n], dtype=np.int64))
               * BITS.get(name, int(re.sub(r"\D", "", name) or 8)) // 8
               for name, dims in re.findall(r"(\w+)\[([\d,]*)\]", types))


def group_size(line):
    written = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    counted = re.search(r"replica_groups=\[(\d+),(\d+)\]<=", line)
    axes = re.search(r"replica_groups=mesh\[(.*?)\].*? \{(.*?)\}", line)
    if axes:  # full axes, or sub-axes such as 'a':(1)2
        sizes = dict(re.findall(r"('[^']*')=(\d+)", axes[1]))
        parts = re.findall(r"('[^']*')(?::\(\d+\)(\d+))?", axes[2])
        return int(np.prod([int(part or sizes[name]) for name, part in parts]))
    return len(written[1].split(",")) if written else int(counted[2]) if counted else len(jax.devices())


def sent_by(kind, size, n):
    """Returns the bytes that a device sends. `size` is the bytes of the result."""
    if kind == "collective-permute":
        return size
    return {"all-gather": size, "all-to-all": size, "all-reduce": 2 * size, "reduce-scatter": size * n}[kind] * (n - 1) / n


def collectives(hlo):
    """Returns the number of collectives of each kind that run, and the bytes that a device sends for each kind."""
    bodies, name = {}, None
    for line in hlo.split("\n"):
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if head:
            name = "ENTRY" if head[1] else head[2]
            bodies[name] = []
        elif name:
            bodies[name].append(line)
    count, sent = counting.Counter(), counting.Counter()

    def visit(name, times):
        for line in bodies.get(name, []):
            found = re.match(r"\s*(?:ROOT )?%?[\w.\-]+ = (.*?) (" + "|".join(KINDS) + r")(-start)?\(", line)
            if found:
                kind, n = found[2], group_size(line)
                types = found[1]
                count[kind] += times
                sent[kind] += times * sent_by(kind, bytes_of(types), n)
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
            for body in re.findall(r"(?:body|calls|to_apply)=%?([\w.\-]+)", line):
                visit(body, times * int(trips[1]) if trips else times)

    visit("ENTRY", 1)
    return [count[k] for k in KINDS], [sent[k] for k in KINDS]
