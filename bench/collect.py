#!/usr/bin/env python3
"""Puts the JSON reports of one bench/run_spmv.sh into one file: what is common once, then each run's plan, set-up and benchmarks.

usage: bench/collect.py OUT.json REPORT.json...
"""
import json
import pathlib
import sys

COMMON = ("date", "host_name", "library_version", "commit", "features", "topology", "num_cpus")


def main(out, reports):
    runs = []
    common = {}
    for path in sorted(reports):
        report = json.loads(pathlib.Path(path).read_text())
        context = report["context"]
        if not common:
            common = {key: context[key] for key in COMMON if key in context}
            common["device"] = context["devices"][0].split(" ", 1)[-1]
        plan = context["plan"]
        runs.append({
            "tag": pathlib.Path(path).stem,
            "matrix": context["matrix"].rsplit("/", 1)[-1],
            "devices": len(context["devices"]),
            "rows": plan["rows"],
            "cols": plan["cols"],
            "nonzeros": plan["nonzeros"],
            "kernels": sorted({shard["kernel"] for shard in plan["shards"]}),
            "transport": plan["transport"],
            "setup_seconds": context["setup_seconds"],
            "benchmarks": report["benchmarks"],
        })
    pathlib.Path(out).write_text(json.dumps({"context": common, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
