"""scripts/attack faults-cuda: the tests have to find faults that are seeded in CUDA code."""

import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import threading
import time

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def seeded(fault):
    """The text of the fault's file with the fault in it."""
    text = (ROOT / fault["file"]).read_text()
    if text.count(fault["old"]) != 1 or fault["old"] == fault["new"]:
        sys.exit(f"fault {fault['name']}: {fault['file']} has its text {text.count(fault['old'])} times, not once")
    return text.replace(fault["old"], fault["new"])


def faults_cuda(options):
    if tomllib is None:
        sys.exit("faults-cuda needs Python 3.11")
    faults = tomllib.loads((ROOT / "tests" / "attack" / "faults_cuda.toml").read_text())["fault"]
    unknown = set(options.fault) - {fault["name"] for fault in faults}
    if unknown:
        sys.exit(f"no fault is called {', '.join(sorted(unknown))}")
    faults = [fault for fault in faults if not options.fault or fault["name"] in options.fault]
    texts = {fault["name"]: seeded(fault) for fault in faults}
    if options.check:
        print(f"{len(faults)} faults, each with one place")
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    gpus = sum(line.startswith("GPU ") for line in listed.splitlines())
    for fault in [fault for fault in faults if fault.get("gpus", 1) > gpus]:
        print(f"{fault['name']}: left out, it needs {fault['gpus']} GPUs")
        faults.remove(fault)
    copy = options.scratch / "seeded-source"
    build = options.scratch / "seeded-build"
    shutil.rmtree(copy, ignore_errors=True)
    # With new times, so that nothing that was built with a fault in it stays.
    shutil.copytree(ROOT, copy, copy_function=shutil.copy, symlinks=True,
                    ignore=shutil.ignore_patterns(".*", "build", "build-*", "results", "__pycache__"))
    configure = ["cmake", "-S", copy, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRMSP_CUDA=ON",
                 "-DRMSP_COMMIT=seeded"]
    log_path = options.scratch / "faults.log"
    compilers = concurrent.futures.ThreadPoolExecutor(options.jobs)
    at_once = threading.Semaphore(options.programs)

    def finds(programs, folder, log):
        """The first program whose tests fail, or hang."""
        # Threads of several programs that wait by spinning would take each other's cores.
        environment = dict(os.environ, OMP_WAIT_POLICY="passive",
                           OMP_NUM_THREADS=str(max(1, options.jobs // options.programs)))
        for name in programs:
            # In a mixed order, so that the first that fails comes as soon as by chance, not behind all other kernels'.
            command = [folder / "bin" / name, "--gtest_brief=1", "--gtest_fail_fast", "--gtest_shuffle",
                       "--gtest_random_seed=1"]
            if name != "test_kernels_cuda":
                command.append("--gtest_filter=*gpu*")
            with at_once:
                try:
                    if subprocess.run(command, stdout=log, stderr=log, timeout=options.timeout,
                                      env=environment).returncode != 0:
                        return name
                except subprocess.TimeoutExpired:
                    return f"{name}, which hangs"
        return ""

    def plan(fault):
        """The commands that would build the fault's programs with the fault, which is not left in the copy."""
        path = copy / fault["file"]
        text, times = path.read_bytes(), path.stat()
        path.write_text(texts[fault["name"]])
        command = ["ninja", "-C", build, "-f", "plan.ninja", "-n", "-v", *(f"test_{name}" for name in fault["tests"])]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        path.write_bytes(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return [line.split("] ", 1)[1] for line in lines if line.startswith("[")]

    def try_one(fault, commands):
        """Builds the programs in a folder of hard links to all that was built, and runs them."""
        began = time.monotonic()
        mine = options.scratch / "seeded" / fault["name"]
        shutil.rmtree(mine, ignore_errors=True)
        shutil.copytree(copy, mine / "source", copy_function=os.link, symlinks=True)
        shutil.copytree(build, mine / "build", copy_function=os.link, symlinks=True)
        (mine / "source" / fault["file"]).unlink()
        (mine / "source" / fault["file"]).write_text(texts[fault["name"]])
        for unity in (mine / "build").rglob("Unity/unity_*_c*.c*[xu]"):  # these name sources
            text = unity.read_text().replace(str(copy), str(mine / "source"))
            unity.unlink()
            unity.write_text(text)

        def make(command, log):
            command = command.replace(str(copy), str(mine / "source")).replace(str(build), str(mine / "build"))
            words = shlex.split(command)
            # What a compiler overwrites would change the file of all folders.
            for output in (after for before, after in zip(words, words[1:]) if before == "-o"):
                (mine / "build" / output).unlink(missing_ok=True)
            subprocess.run(command, shell=True, check=True, cwd=mine / "build", stdout=log, stderr=log)

        with (mine / "log").open("w") as log:
            compiled = [command for command in commands if " -c " in command]
            for done in [compilers.submit(make, command, log) for command in compiled]:
                done.result()
            for command in commands:
                if command not in compiled:
                    make(command, log)
            found = finds([f"test_{name}" for name in fault["tests"]], mine / "build", log)
        for folder in ("source", "build"):
            shutil.rmtree(mine / folder)
        print(f"{fault['name']}: {f'found by {found}' if found else 'NOT FOUND'} ({fault['what']}; "
              f"{time.monotonic() - began:.0f} s)", flush=True)
        return bool(found)

    with log_path.open("w") as log:
        subprocess.run(configure + options.cmake, check=True, stdout=log)
        programs = sorted({f"test_{name}" for fault in faults for name in fault["tests"]})
        subprocess.run(["cmake", "--build", build, "-j", str(options.jobs), "-t", *programs], check=True, stdout=log,
                       stderr=log)
        # Under another name, so that ninja plans what is to be built and not to make this file anew.
        shutil.copy(build / "build.ninja", build / "plan.ninja")
        plans = [plan(fault) for fault in faults]
        with concurrent.futures.ThreadPoolExecutor(len(faults) + 1) as everything:
            seeds = [everything.submit(try_one, fault, commands) for fault, commands in zip(faults, plans)]
            broken = [name for name in programs if finds([name], build, log)]
            found = sum(seed.result() for seed in seeds)
    if broken:
        sys.exit(f"{', '.join(broken)}: fail without a fault: see {log_path}")
    print(f"{found} of {len(faults)} faults found")
    return 0 if found == len(faults) else 1
