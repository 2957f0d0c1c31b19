"""ARM: the anti-AI engine compiled for aarch64 and run by qemu-user gives the result of x86-64, with NEON in its hot loops.

protect_raw.c is the program. The watermark engine is left out: it needs FFTW for ARM, which Debian's cross compiler lacks.
"""
import glob
import os
import re
import shutil
import subprocess

import numpy
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("IMGWARD_BUILD", os.path.join(ROOT, "build"))
COMPILER, DUMP, QEMU = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", "qemu-aarch64"


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def cross():
    for program in (COMPILER, DUMP, QEMU):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: ./dev deps check")


@pytest.fixture(scope="module")
def flags():
    """Returns the flags of the build for the engine, without a protection that only x86 has."""
    words = run("make", "-s", "-f", "Makefile", "-f", "-", "print", cwd=BUILD,
                input=b"print:\n\t@echo $(libengine_a_CFLAGS) $(CFLAGS)\n").decode().split()
    return [word for word in words if word != "-fcf-protection"] + ["-D_GNU_SOURCE", "-I", os.path.join(ROOT, "src")]


@pytest.fixture(scope="module")
def programs(flags, tmp_path_factory):
    """Returns protect_raw for x86-64 and for aarch64."""
    folder = tmp_path_factory.mktemp("arm")
    sources = [*glob.glob(os.path.join(ROOT, "src", "engine", "protect", "*.c")), os.path.join(ROOT, "src", "engine", "image.c"),
               os.path.join(ROOT, "tests", "ops", "protect_raw.c")]
    names = {"gcc": os.path.join(folder, "native"), COMPILER: os.path.join(folder, "arm")}
    for compiler, name in names.items():
        run(compiler, *flags, "-static", "-o", name, *sources, "-lm")
    return list(names.values())


def samples(*words):
    done = subprocess.run([*words[:-1], os.path.join(ROOT, "data", "protect.weights"), words[-1]], capture_output=True, timeout=300)
    if done.returncode == 2 and b"the processor does not support" in done.stderr:
        return None
    assert done.returncode == 0, done
    return numpy.frombuffer(done.stdout, numpy.uint8).astype(int)


def test_arm_gives_the_samples_of_x86(programs):
    native, arm = programs
    protected = samples(QEMU, arm, "plain")
    assert protected is not None and protected.size == 320 * 240 * 3
    for kernels in ("plain", "avx2", "avx512f"):
        other = samples(native, kernels)
        if other is None:  # kernels of another processor
            assert kernels != "plain"
            continue
        apart = abs(protected - other)
        print(f"ARM and x86-64 {kernels}: {numpy.count_nonzero(apart)} of {apart.size} samples differ, by at most {apart.max()}")
        # Without fused operations the rounding differs, so a unit of the step may be the next unit, an eighth of the change.
        assert numpy.count_nonzero(apart) < apart.size / 1000
        assert kernels == "plain" or apart.max() <= 1


def test_the_hot_loops_use_neon(programs):
    text = run(DUMP, "-d", "--no-show-raw-insn", programs[1]).decode()
    loops = {name: body for name, body in re.findall(r"<([\w.]+)>:\n(.*?)(?:\n\n|\Z)", text, re.S) if name.startswith("conv_plain_")}
    fused = {name: len(re.findall(r"\bfml[as]\tv\d+\.4s", body)) for name, body in loops.items()}
    print("fused operations on four floats:", fused)
    for name in ("products", "down", "up", "forward", "ends"):
        assert sum(count for loop, count in fused.items() if loop.startswith("conv_plain_" + name)) > 0, name
        assert not [loop for loop, body in loops.items() if loop.startswith("conv_plain_" + name) and re.search(r"\bfmadd\ts\d", body)]


def test_the_seal_knows_the_system_calls_of_arm(flags, tmp_path):
    """If a processor lacks a call, libseccomp gives it a negative number and ignores the rule."""
    seal = os.path.join(ROOT, "src", "image", "seal.c")
    for header in ("seccomp.h", "seccomp-syscalls.h"):
        os.symlink(f"/usr/include/{header}", tmp_path / header)
    run(COMPILER, *flags, "-isystem", tmp_path, "-c", "-o", tmp_path / "seal.o", seal)
    with open(seal, encoding="utf-8") as file:
        calls = sorted(set(re.findall(r"SCMP_SYS\(\w+\)", file.read())))
    checks = "".join(f'_Static_assert({call} >= 0, "{call}");\n' for call in calls)
    run(COMPILER, "-isystem", tmp_path, "-fsyntax-only", "-x", "c", "-", input=f"#include <seccomp.h>\n{checks}".encode())
    print(f"{len(calls)} system calls of the seal exist on ARM")
