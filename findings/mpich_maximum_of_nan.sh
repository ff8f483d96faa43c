#!/usr/bin/env bash
# MPICH 5.0.2: after an MPI_Allreduce with MPI_MAX the ranks hold different values, if one of them gave NaN.
#
# Guess before the first run: whether a maximum with NaN is NaN may depend on the order of operands, but an all-reduce
# gives all ranks one result.
# Seen: of one element on two ranks, one NaN and one 7, each rank returns the operand of the other one: the rank that
# gave NaN has 7, the rank that gave 7 has NaN. Of 1000 equal elements both ranks agree, but the first and the last
# element differ.
#
# Consequence for Partita: maxima and minima are never left to MPI (`native_reductions` is for sums and products); ours
# keep NaN on every rank, as XLA does. A condition that each rank computes by itself from such a result would let ranks
# go different ways, which a run reports as R014.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install mpich==5.0.2 mpi4py==4.1.2 numpy==2.3.4
cat > "$folder/maximum.py" <<'PYTHON'
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
if world.rank == 0:
    print(MPI.Get_library_version().split()[0], MPI.Get_library_version().split()[2])
for count in (1, 1000):
    for giver in (0, 1):
        mine = numpy.full(count, numpy.nan if world.rank == giver else 7, "float32")
        result = numpy.empty_like(mine)
        world.Allreduce(mine, result, MPI.MAX)
        all_ranks = world.gather([float(result[0]), float(result[-1])])
        if world.rank == 0:
            print(f"{count} elements, rank {giver} gives NaN, first and last:", *all_ranks)
PYTHON
"$folder/venv/bin/mpiexec" -n 2 "$folder/venv/bin/python" "$folder/maximum.py" | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
MPICH 5.0.2
1 elements, rank 0 gives NaN, first and last: [7.0, 7.0] [nan, nan]
1 elements, rank 1 gives NaN, first and last: [nan, nan] [7.0, 7.0]
1000 elements, rank 0 gives NaN, first and last: [7.0, nan] [7.0, nan]
1000 elements, rank 1 gives NaN, first and last: [nan, 7.0] [nan, 7.0]
SEEN
echo "as seen"
