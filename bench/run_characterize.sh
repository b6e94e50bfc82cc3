#!/usr/bin/env bash
# What bounds SpMV and A A on generated matrices and on the files given, in single precision and with the fast memory of
# Kurt et al. (1.5 MiB): their Table I and Figures 3, 5 and 6, with a simulated cache in place of hardware counters.
# Bands come with a random symmetric permutation of theirs. Usage: bench/run_characterize.sh [MATRIX_FILE...]
#   PROGRAM  mspmv                          (build/bin/mspmv)
#   OUT      where characterize.json goes   (bench/results/tmp)
#   OPTIONS  more of mspmv characterize     (--devices host:1)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${PROGRAM:-$here/../build/bin/mspmv}
out=${OUT:-$here/results/tmp}
read -r -a options <<<"${OPTIONS:---devices host:1}"
mkdir -p "$out/each"

# characterize NAME WORDS...: y = A x, and A A of what is square.
characterize() {
    local name=$1
    shift
    "$program" characterize --set matrix.precision=float "${options[@]}" "$@" --json "$out/each/$name.spmv.json" \
        > "$out/each/$name.spmv.txt"
    "$program" characterize --set matrix.precision=float "${options[@]}" "$@" --square \
        --json "$out/each/$name.spgemm.json" > "$out/each/$name.spgemm.txt" 2> "$out/each/$name.error" ||
        grep -q 'as many columns' "$out/each/$name.error"
}

# shuffled ROWS FILE: a numbering in random order, always the same.
shuffled() {
    python3 - "$1" "$2" <<'PYTHON'
import random
import struct
import sys

rows = int(sys.argv[1])
order = list(range(rows))
random.Random(1).shuffle(order)
header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows},), }}"
header += " " * (-(11 + len(header)) % 64) + "\n"
with open(sys.argv[2], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack(f"<{rows}q", *order))
PYTHON
}

characterize stencil27 --set "matrix.generate=stencil27 30 30 30"
characterize rmat --set "matrix.generate=rmat 13 8"
shuffled 20000 "$out/each/shuffled.npy"
for band in 15 31; do
    characterize "band-$band" --set "matrix.generate=banded 20000 $band"
    characterize "permuted-$band" --set "matrix.generate=banded 20000 $band" \
        --set "matrix.permutation=$out/each/shuffled.npy"
done
for file in "$@"; do
    name=$(basename "$file")
    characterize "${name%%.*}" --matrix "$file"
done
python3 "$here/characterize_tables.py" "$out/characterize.json" "$out"/each/*.json
rm -r "$out/each"
