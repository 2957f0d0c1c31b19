"""Runs the fuzz targets in turn and records the CPU time of each.

In VAR/fuzz, NAME/ is a target's corpus, and NAME-crash-* are inputs that crashed it. NAME.log is its last turn.
account.json sums CPU seconds (user and system), inputs and crashes over all turns. A later call continues.
"""

import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ["IMGWARD_ROOT"])
WORK = pathlib.Path(os.environ["IMGWARD_VAR"]) / "fuzz"
TREE = ROOT / "build-fuzz"
CORPUS = TREE / "corpus"  # unpacked by fuzz.sh
ACCOUNT = WORK / "account.json"
# Timeout of one input in seconds, for targets that need more than 30: the instrumented extractor is slow.
TIMEOUT_S = {"fuzz_watermark": 600}
# Maximum bytes of an input, for targets that need more than the default of 4096.
LENGTH_MAX = {"fuzz_body": 16384, "fuzz_jpeg": 8192, "fuzz_png": 8192, "fuzz_reading": 32768, "fuzz_webp": 8192, "fuzz_xmp": 4096}
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


def account_read():
    return json.loads(ACCOUNT.read_text()) if ACCOUNT.exists() else {}


def account_add(name, cpu_s, inputs, finds):
    with open(ACCOUNT.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        account_add_locked(name, cpu_s, inputs, finds)


def account_add_locked(name, cpu_s, inputs, finds):
    account = account_read()
    entry = account.setdefault(name, {"cpu_s": 0.0, "inputs": 0, "finds": 0})
    entry["cpu_s"] = round(entry["cpu_s"] + cpu_s, 1)
    entry["inputs"] += inputs
    entry["finds"] += finds
    fresh = ACCOUNT.with_suffix(".new")
    fresh.write_text(json.dumps(account, indent=1, sort_keys=True))
    fresh.replace(ACCOUNT)


def turn_take(name, seconds):
    """Gives a target one turn; true if it found nothing."""
    (WORK / name).mkdir(parents=True, exist_ok=True)
    command = [
        str(TREE / name), f"-max_total_time={seconds}", f"-max_len={LENGTH_MAX.get(name, 4096)}", f"-timeout={TIMEOUT_S.get(name, 30)}",
        "-rss_limit_mb=2048", "-print_final_stats=1", f"-use_value_profile={int(name not in TIMEOUT_S)}", f"-artifact_prefix={WORK}/{name}-",
        str(WORK / name), *[str(folder) for folder in [CORPUS / name] if folder.exists()],
    ]
    log = WORK / f"{name}.log"
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    counted = re.search(r"stat::number_of_executed_units: (\d+)", text)
    is_good = process.returncode == 0
    account_add(name, used.ru_utime + used.ru_stime, int(counted.group(1)) if counted else 0, int(not is_good))
    if not is_good:
        log.replace(WORK / f"{name}-{int(time.time())}.log")
        print(text[-4000:])
    return is_good


def account_print(names):
    account = account_read()
    for name in names:
        entry = account.get(name, {"cpu_s": 0, "inputs": 0, "finds": 0})
        print(f"{name:<16} {entry['cpu_s'] / 60:6.1f} CPU-minutes {entry['inputs']:>11} inputs {entry['finds']} finds")


def main():
    known = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="length of a turn (60)")
    parser.add_argument("--cpu-minutes", type=float, help="repeat turns until every target has used this much CPU time")
    parser.add_argument("--jobs", type=int, default=1, help="targets in parallel (1)")
    parser.add_argument("--account", action="store_true", help="print the totals, then exit")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(known))
    options = parser.parse_args()
    unknown = set(options.targets) - set(known)
    if unknown:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    names = options.targets or known
    WORK.mkdir(parents=True, exist_ok=True)
    bad = []
    while not options.account:
        wanted_s = (options.cpu_minutes or 0) * 60
        waiting = [n for n in names if n not in bad and (not wanted_s or account_read().get(n, {}).get("cpu_s", 0) < wanted_s)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as turns:
            bad += [name for name, is_good in zip(waiting, turns.map(lambda n: turn_take(n, options.seconds), waiting)) if not is_good]
        if not wanted_s or not waiting:
            break
    account_print(names)
    for name in bad:
        print(f"{name}: found something; see {WORK.name}/{name}-*")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
