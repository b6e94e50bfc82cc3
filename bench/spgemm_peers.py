#!/usr/bin/env python3
"""Prints, as Markdown, how many times as fast librmsp's whole products are as those of other programs on the same
matrices, by speeds that were kept of both, and the geometric mean over the best program of each matrix.

usage: bench/spgemm_peers.py RESULTS.json PEERS.json [KERNEL]
  RESULTS  of bench_spgemm
  PEERS    bench/results/2026-11-21-peers/spgemm-peers.json, or one like it
  KERNEL   whose speeds are taken (spgemm)
"""
import json
import pathlib
import statistics
import sys


def main(results, peers, kernel="spgemm"):
    ours = {b["matrix"]: b["gflops"] for b in json.loads(pathlib.Path(results).read_text())["benchmarks"]
            if b["kernel"] == kernel and not b.get("error_occurred")}
    theirs = [b for b in json.loads(pathlib.Path(peers).read_text())["benchmarks"] if b["matrix"] in ours]
    # Of values alone, which is not what the others compute.
    programs = [program for program in theirs[0]["gflops"] if "alone" not in program]
    print(f"| matrix | {kernel} | {' | '.join(programs)} | over the best |\n|---|{'--:|' * (len(programs) + 2)}")
    over_best = []
    over = {program: [] for program in programs}
    for b in theirs:
        speed = ours[b["matrix"]]
        known = {program: b["gflops"][program] for program in programs if b["gflops"][program]}
        for program, other in known.items():
            over[program].append(speed / other)
        over_best.append(speed / max(known.values()))
        cells = [f"{known[program]:g}" if program in known else b["missing"][program] for program in programs]
        print(f"| {b['matrix']} | {speed:.0f} | {' | '.join(cells)} | {over_best[-1]:.2f} |")
    means = [f"{statistics.geometric_mean(ratios):.2f}" for ratios in over.values()]
    print(f"| times, geometric mean | | {' | '.join(means)} | **{statistics.geometric_mean(over_best):.2f}** |")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
