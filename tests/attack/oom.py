"""scripts/attack oom: requests for memory and threads fail, in programs."""

import collections
import concurrent.futures
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile

# Exit codes that name an error of the caller's or of the machine's: io, out of memory, device. 2 (usage) and 1
# (internal) would tell the caller of a fault that is not his.
NAMED = {3, 4, 5}


def small_matrix(rows=40):
    lines = ["%%MatrixMarket matrix coordinate real general"]
    entries = [(i + 1, (i * 7 + 3 * k) % rows + 1, i % 9 + k + 0.5) for i in range(rows) for k in range(i % 4 + 1)]
    lines.append(f"{rows} {rows} {len(entries)}")
    lines += [f"{i} {j} {value}" for i, j, value in entries]
    return "\n".join(lines) + "\n"


def is_whole(path):
    """Whether a file is what its name says, to the end."""
    try:
        if path.suffix == ".json":
            json.loads(path.read_text())
            return True
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None and len(archive.namelist()) >= 5
    except (ValueError, zipfile.BadZipFile):
        return False


class Program:
    """A program under attack: its command, and what it writes."""

    def __init__(self, name, arguments, output=None):
        self.name, self.arguments, self.output = name, arguments, output


def programs(build, scratch, variant=0):
    """The programs of a variant: others have other sizes, devices, types and methods, and so other requests."""
    scratch.mkdir(parents=True, exist_ok=True)
    matrix = scratch / "a.mtx.gz"
    with gzip.open(matrix, "wt") as file:
        file.write(small_matrix(40 + 23 * variant))
    config = scratch / "run.toml"
    config.write_text("[runtime]\nlimit_gbs = 10.0\n[run]\niterations = 2\nwarmup = 1\n"
                      f'[matrix]\nprecision = "{["double", "float"][variant % 2]}"\n')
    solver = scratch / "solve.toml"
    solver.write_text(f'[matrix]\ngenerate = "stencil7 {5 + variant} 4 4"\nvalues = "poisson"\n'
                      "[runtime]\nlimit_gbs = 10.0\n")
    devices = ["host:2x1", "host:3x1", "host:1x2"][variant % 3]
    method = ["cg", "gmres", "minres"][variant % 3]
    mspmv = str(build / "bin" / "mspmv")
    solve = [mspmv, "solve", str(solver), "--devices", devices, "--json", "OUTPUT", "--preconditioner"]
    run = [mspmv, "run", str(config), "--matrix", str(matrix), "--devices", devices, "--json", "OUTPUT"]
    return {
        program.name: program
        for program in [
            Program("run", run, "report.json"),
            Program("streamed", run + ["--set", "run.mode=streamed"], "report.json"),
            Program("convert", [mspmv, "convert", str(matrix), "OUTPUT"], "b.npz"),
            Program("spgemm", [mspmv, "spgemm", str(config), "--matrix", str(matrix), "--devices", devices, "--json",
                               "OUTPUT"], "report.json"),
            Program("solve", solve + ["none", "--set", f"solver.method={method}"], "report.json"),
            Program("multigrid", solve + [["amg", "sa-amg"][variant % 2]], "report.json"),
            Program("service", [str(build / "bin" / "attack_service"), str(64 + 16 * variant), devices]),
        ]
    }


class Sweep:
    def __init__(self, program, build, scratch, timeout):
        self.program, self.scratch, self.timeout = program, scratch, timeout
        self.environment = dict(
            os.environ, LD_PRELOAD=str(build / "bin" / "rmsp_fail_allocation.so"), OMP_NUM_THREADS="2",
            OMP_WAIT_POLICY="passive", RMSP_CACHE_DIR="off", RMSP_BIND="none")

    def run(self, name, **variables):
        """Exit status (None: it hung), standard error, and what is wrong with the files."""
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        output = folder / (self.program.output or "none")
        command = [str(output) if word == "OUTPUT" else word for word in self.program.arguments]
        environment = dict(self.environment, **variables)
        process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            _, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "", ""
        files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("core"))
        wrong = ""
        if self.program.output:
            if any(".part" in name for name in files):
                wrong = "left " + ", ".join(files)
            elif output.exists() and not is_whole(output):
                wrong = f"{output.name} has {output.stat().st_size} bytes"
            elif process.returncode == 0 and not output.exists():
                wrong = f"no {output.name}"
        shutil.rmtree(folder, ignore_errors=True)
        return process.returncode, errors.decode(errors="replace"), wrong

    def count(self):
        """How many requests a run makes that nothing fails in."""
        file = self.scratch / "count"
        status, errors, _ = self.run("whole", RMSP_FAIL_COUNT=str(file))
        if status != 0:
            sys.exit(f"{self.program.name} fails by itself: {status}\n{errors}")
        return int(file.read_text())

    def judge(self, status, errors, wrong):
        if status is None:
            return "hung"
        # libgomp's exit() destroys what the program's other threads still use, so that it may die before it
        # ends with 1.
        if self.program.name == "service" and status in (1, -signal.SIGSEGV, -signal.SIGABRT) and "libgomp:" in errors:
            return "ended by libgomp"
        if status < 0:
            return f"died of {signal.Signals(-status).name}"
        if wrong:
            return "half-written file"
        if status == 4 and "beyond recovery" in errors:
            return "exit 4 at last resort"
        if status == 0:
            return "success"
        if status in NAMED and "error:" in errors:
            return f"exit {status}"
        return f"unnamed error, exit {status}"


GOOD = {"success", "ended by libgomp", "exit 4 at last resort"} | {f"exit {code}" for code in NAMED}


def oom_of_devices(options):
    program = str(options.build / "bin" / "attack_device_memory")
    command = [program, options.device, str(options.sample), *options.program]
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    return min(1, abs(subprocess.run(command, env=environment).returncode))


def oom(options):
    if options.device:
        return oom_of_devices(options)
    known = programs(options.build, options.scratch, options.variant)
    failed = False
    for name in options.program or known:
        sweep = Sweep(known[name], options.build, options.scratch / name, options.timeout)
        shutil.rmtree(sweep.scratch, ignore_errors=True)
        sweep.scratch.mkdir(parents=True)
        total = sweep.count()
        numbers = list(range(max(1, options.begin), min(total, options.end or total) + 1))
        if options.sample and len(numbers) > options.sample:
            numbers = [numbers[i * len(numbers) // options.sample] for i in range(options.sample)]
        for mode in options.modes.split(","):
            outcomes = collections.Counter()

            def one(number):
                variables = {"RMSP_FAIL_AT": str(number), "RMSP_FAIL_ALL": "1" if mode == "all" else "0"}
                status, errors, wrong = sweep.run(f"{mode}-{number}", **variables)
                return number, sweep.judge(status, errors, wrong), errors, wrong

            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for number, outcome, errors, wrong in pool.map(one, numbers):
                    outcomes[outcome] += 1
                    if outcome not in GOOD:
                        failed = True
                        last = errors.strip().splitlines()[-1:] or [""]
                        print(f"{name}: {mode} {number} of {total}: {outcome} {wrong} {last[0]}", flush=True)
            what = "one fails" if mode == "one" else "all from one on fail"
            print(f"{name}: {what}: {len(numbers)} of {total} requests: "
                  + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), flush=True)
    return 1 if failed else 0
