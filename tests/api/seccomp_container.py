"""Runs programs as in a container: some system calls fail with EPERM, as under Docker's seccomp profile."""
import ctypes
import os
import platform
import struct

# seccomp(2), SECCOMP_MODE_FILTER and classic BPF (linux/seccomp.h, linux/filter.h).
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD_CALL, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO_EPERM = 0x7FFF0000, 0x00050001
LANDLOCK = (444, 445, 446)
SECCOMP = {"x86_64": 317, "aarch64": 277}
PRCTL = {"x86_64": 157, "aarch64": 167}


def rules(has_seccomp):
    """Returns the filter. It refuses Landlock, and without has_seccomp both ways to install a seccomp filter."""
    machine = platform.machine()
    lines = [(LOAD_CALL, 0, 0, 0)]
    for number in LANDLOCK + (() if has_seccomp else (SECCOMP[machine],)):
        lines += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO_EPERM)]
    if not has_seccomp:
        # prctl is refused only with PR_SET_SECCOMP as first argument, at offset 16 of struct seccomp_data.
        lines += [(JUMP_EQUAL, 0, 3, PRCTL[machine]), (LOAD_CALL, 0, 0, 16), (JUMP_EQUAL, 0, 1, PR_SET_SECCOMP), (RETURN, 0, 0, ERRNO_EPERM)]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines), len(lines)


def without_landlock():
    enter(True)


def without_landlock_and_seccomp():
    enter(False)


def enter(has_seccomp):
    """Installs the filter; for preexec_fn of subprocess."""
    code, count = rules(has_seccomp)
    libc = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", count, ctypes.addressof(kept))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0) != 0:
        os._exit(99)


def is_possible():
    """False if the kernel has no seccomp filters or the architecture is not supported."""
    if platform.machine() not in SECCOMP:
        return False
    child = os.fork()
    if child == 0:
        without_landlock()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
