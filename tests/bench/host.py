"""A whole host with one core and little memory: does it hold, and how many pictures an hour does it make?

    bench host [MIB]    MariaDB, Redis, nginx, API, console and worker share a control group of MIB (1024) and one core

Prints the memory of each program. For each kind of picture it prints seconds, CPU of the image process, pictures in an
hour of CPU, and the group's peak. At the end MariaDB's buffer pool is full, and the largest picture and two sign-ins come
at the same time. The exit code is 1 if an order did not end as it should, or if the kernel killed a process. Needs root and
a writable /sys/fs/cgroup.
"""
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "api"), os.path.join(ROOT, "tests", "console")]

import bombs  # noqa: E402
import pictures  # noqa: E402
from browser import Browser  # noqa: E402
from client import Stack, environment_read  # noqa: E402

MIB = 1 << 20
GROUPS = "/sys/fs/cgroup"
NAME = "imgward-bench"


class Group:
    """A control group of version 1 or 2 with a memory limit and one core."""

    def __init__(self, limit_bytes):
        self.is_first = os.path.isdir(GROUPS + "/memory")
        controllers = ["memory", "cpuset"] if self.is_first else [""]
        self.folders = [os.path.join(GROUPS, name, NAME) for name in controllers]
        if not self.is_first:
            self.write(GROUPS, "cgroup.subtree_control", "+memory +cpuset")
        for folder in self.folders:
            os.makedirs(folder, exist_ok=True)
        core = str(max(os.sched_getaffinity(0)))
        self.write(self.folders[-1], "cpuset.cpus", core)
        self.write(self.folders[-1], "cpuset.mems", "0")
        self.write(self.folders[0], "memory.limit_in_bytes" if self.is_first else "memory.max", str(limit_bytes))

    @staticmethod
    def write(folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folders[0], name), encoding="ascii") as file:
            return file.read()

    def join(self):
        for folder in self.folders:
            self.write(folder, "cgroup.procs", str(os.getpid()))

    def peak_mib(self):
        """Returns the peak since the last call; with version 2 the peak since the start."""
        name = "memory.max_usage_in_bytes" if self.is_first else "memory.peak"
        peak = int(self.read(name)) // MIB
        if self.is_first:
            self.write(self.folders[0], name, "0")
        return peak

    def killed(self):
        return int(re.search(r"oom_kill (\d+)", self.read("memory.oom_control" if self.is_first else "memory.events"))[1])

    def programs(self):
        """Returns the proportional memory of each program in MiB."""
        sums = {}
        for pid in self.read("cgroup.procs").split():
            with open(f"/proc/{pid}/comm", encoding="ascii") as name, open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                kib = int(re.search(r"^Pss:\s+(\d+)", rollup.read(), re.M)[1])
                sums.setdefault(name.read().strip(), []).append(kib / 1024)
        return sums

    def cpu_seconds(self):
        """Returns the CPU seconds of the image processes; the other programs need little."""
        ticks = 0
        for pid in self.read("cgroup.procs").split():
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                name, _, rest = file.read().partition(") ")
            if name.endswith("(imgward-image"):
                ticks += sum(map(int, rest.split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def remove(self):
        for folder in self.folders:
            os.rmdir(folder)


def dev(group, var, *words):
    subprocess.run([os.path.join(ROOT, "dev"), *words], env={**os.environ, "IMGWARD_VAR": var}, check=True,
                   preexec_fn=group.join, stdout=subprocess.DEVNULL)


def as_installed(group, var):
    """Uses an installation's number of console processes and cost of hashes, instead of the tests' values."""
    path = os.path.join(var, "etc", "imgward.conf")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^(processes = 4|hash_.*)\n", "", text, flags=re.M))
    for verb in ("stop", "start"):
        dev(group, var, "stack", verb, "console")


def picture(megapixels, form="JPEG", **options):
    """Makes a picture of 3:2 with as much texture as a photograph, from tiles."""
    unit = int((megapixels * 1e6 / 6) ** 0.5)
    whole, file = Image.new("RGB", (3 * unit, 2 * unit)), io.BytesIO()
    scene = pictures.scene(1500, 1000)
    for y in range(0, whole.height, scene.height):
        for x in range(0, whole.width, scene.width):
            whole.paste(scene, (x, y))
    whole.save(file, form, **options)
    return file.getvalue()


def order(client, kind, data, name):
    texts = {"watermarks": [{"text": "to Ada"}]} if kind == "wtr-embed" else {}
    created = client.create([{"fileName": name, **texts}], kind=kind)
    answer = client.upload(created.data["files"][0]["uploadUrl"], data)
    if answer.status != 201:
        return answer.json["message"]
    client.confirm(created.data["orderId"])
    whole = client.wait(created.data["orderId"], 300)
    return whole["errors"] or whole["status"]


def row(group, what, is_wanted, run):
    begun, used = time.monotonic(), group.cpu_seconds()
    end = run()
    seconds, used = time.monotonic() - begun, group.cpu_seconds() - used
    hour = f"{3600 / used:6.0f} an hour" if used else " " * 14
    print(f"  {what:42} {seconds:5.1f} s, {used:5.2f} s of CPU,{hour}, peak {group.peak_mib():4d} MiB: {end}", flush=True)
    return is_wanted(end)


def at_once(stack, client, large):
    """Processes the largest picture during two sign-ins, with MariaDB's buffer pool full."""
    stack.sql("CREATE TABLE filler AS SELECT seq, REPEAT('x', 8000) text FROM seq_1_to_20000")
    stack.sql("SELECT COUNT(*), SUM(LENGTH(text)) FROM filler")
    users = [stack.environment["IMGWARD_CONSOLE_USER"], stack.environment["IMGWARD_CONSOLE_ADMIN_USER"]]
    words = [stack.environment["IMGWARD_CONSOLE_PASSWORD"], stack.environment["IMGWARD_CONSOLE_ADMIN_PASSWORD"]]
    answers, stop = [], threading.Event()

    def sign_in(user, word):
        while not stop.is_set():
            answers.append(Browser(stack).sign_in(user, word).status)
            stop.wait(5)
    threads = [threading.Thread(target=sign_in, args=pair) for pair in zip(users, words)]
    for thread in threads:
        thread.start()
    end = order(client, "wtr-embed", large, "a.jpg")
    stop.set()
    for thread in threads:
        thread.join()
    stack.sql("DROP TABLE filler")
    return f"{end}, sign-ins {sorted(set(answers))}"


def doctor_memory(group, stack):
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "doctor"],
                          preexec_fn=group.join, capture_output=True, text=True, check=False)
    return next(line for line in done.stdout.splitlines() if line.startswith("memory"))


def measure(group, stack):
    client = stack.account_new("enterprise")
    doctor = doctor_memory(group, stack)
    for name, sizes in sorted(group.programs().items()):
        print(f"  {name:16} {len(sizes):3d} processes {sum(sizes):6.1f} MiB")
    print("  " + doctor)
    kinds = {"JPEG": picture(24, quality=92), "progressive JPEG": picture(24, quality=92, progressive=True)}
    most = int(re.search(r"(\d+) \(watermarkEmbed\)", doctor)[1])
    large = picture(most - 1, quality=92)
    group.peak_mib()
    good = [row(group, f"{kind}, {name}, 24 megapixels", "complete".__eq__, lambda k=kind, d=data: order(client, k, d, "a.jpg"))
            for kind in ("anti-ai", "wtr-embed") for name, data in kinds.items()]
    good.append(row(group, "a PNG of 16 bits that is too large", lambda end: "MiB are allowed" in end,
                    lambda: order(client, "anti-ai", bombs.png(6000, 4000, 16, 6), "a.png")))
    good.append(row(group, f"wtr-embed, {most - 1} megapixels, all at once", lambda end: end.startswith("complete"),
                    lambda: at_once(stack, client, large)))
    print(f"  killed by the kernel: {group.killed()}")
    return all(good) and group.killed() == 0


def main(mib):
    group = Group(mib * MIB)
    var = tempfile.mkdtemp(prefix="imgward-host.")
    try:
        dev(group, var, "up")
        as_installed(group, var)
        is_good = measure(group, Stack(environment_read(os.path.join(var, "dev.env"))))
    finally:
        dev(group, var, "down")
        group.remove()
    subprocess.run(["rm", "-rf", var], check=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024))
