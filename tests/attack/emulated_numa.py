"""scripts/attack numa: where memory lies on an emulated machine of several NUMA nodes."""

import gzip
import pathlib
import shutil
import subprocess


def find_or_download(given, package, path, scratch):
    """A file of a Debian package, from a folder in which the package is unpacked once."""
    if given:
        return given.resolve()
    folder = scratch / "packages" / package
    if not list(folder.glob(path)):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", next(folder.glob("*.deb")), folder], check=True)
    return sorted(folder.glob(path))[-1]


def newest_kernel():
    """The name of the package of Debian's newest kernel for virtual machines."""
    command = ["apt-cache", "depends", "linux-image-cloud-amd64"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    names = [line.split()[-1] for line in listed.stdout.splitlines() if "Depends:" in line and "linux-image" in line]
    return names[0] + "-unsigned"


def libraries_of(program):
    """What the dynamic linker loads for a program, and the linker."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return sorted({pathlib.Path(word) for word in listed.split() if word.startswith("/")})


INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev 2>/dev/null
export OMP_WAIT_POLICY=passive
/bin/attack_numa
/bin/busybox sync
/bin/busybox poweroff -f
"""


def make_initramfs(program, busybox, folder):
    shutil.rmtree(folder, ignore_errors=True)
    files = {program: "bin/attack_numa", busybox: "bin/busybox"}
    files.update({library: str(library).lstrip("/") for library in libraries_of(program)})
    for source, target in files.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source.resolve(), folder / target)
    (folder / "init").write_text(INIT)
    (folder / "init").chmod(0o755)
    image = folder.with_suffix(".cpio.gz")
    names = subprocess.run(["find", "."], cwd=folder, check=True, capture_output=True).stdout
    command = [busybox, "cpio", "-o", "-H", "newc"]
    packed = subprocess.run(command, cwd=folder, input=names, check=True, capture_output=True)
    with gzip.open(image, "wb", compresslevel=1) as file:
        file.write(packed.stdout)
    return image


def numa(options):
    scratch = options.scratch / "numa"
    scratch.mkdir(parents=True, exist_ok=True)
    kernel = find_or_download(options.kernel, "" if options.kernel else newest_kernel(), "boot/vmlinuz-*", scratch)
    busybox = find_or_download(options.busybox, "busybox-static", "bin/busybox", scratch)
    image = make_initramfs(options.build / "bin" / "attack_numa", busybox, scratch / "root")
    memory = options.memory // options.nodes
    command = ["qemu-system-x86_64", "-nographic", "-no-reboot", "-nic", "none", "-m", f"{memory * options.nodes}M",
               "-smp", str(2 * options.nodes), "-kernel", str(kernel), "-initrd", str(image), "-append",
               "console=ttyS0 loglevel=4 panic=-1 numa_balancing=disable"]
    for accelerator in options.accel.split(","):
        command += ["-accel", accelerator]
    for node in range(options.nodes):
        command += ["-object", f"memory-backend-ram,id=m{node},size={memory}M", "-numa",
                    f"node,nodeid={node},memdev=m{node},cpus={2 * node}-{2 * node + 1}"]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                             timeout=options.timeout)
    except subprocess.TimeoutExpired as expired:
        print((expired.stdout or b"").decode(errors="replace"))
        print(f"the machine did not end within {options.timeout:.0f} s")
        return 1
    print(run.stdout, run.stderr, sep="")
    return 0 if "passed" in run.stdout.split() else 1
