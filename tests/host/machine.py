"""A booted Debian with systemd: a copy of a bootstrapped folder that systemd-nspawn starts in a separate network.
Needs root and Debian's systemd-container, debootstrap, nftables and iproute2.

The network is one veth pair in 10.213.0.0/16. nftables translates the addresses of packets to the outside.
The filters of nspawn itself are off, so that a unit has the filters of a real host.
"""
import os
import shutil
import subprocess
import time

MIRROR = "http://deb.debian.org/debian"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Debian's installer adds more packages to debootstrap's "minbase"; these matter here.
PACKAGES = "systemd,systemd-sysv,dbus,udev,ca-certificates,iproute2,logrotate,procps"
MEMORY = "/sys/fs/cgroup/memory"


class Failed(Exception):
    """A command that failed: its name, its exit code and its last lines."""


def host(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def base_make(suite, folder):
    """Bootstraps a suite into a folder unless that exists. The apt settings are those of this machine."""
    if os.path.exists(os.path.join(folder, "etc", "debian_version")):
        return
    shutil.rmtree(folder, ignore_errors=True)
    host("debootstrap", "--variant=minbase", "--include=" + PACKAGES, suite, folder, MIRROR)
    host("cp", "-r", "/etc/apt/apt.conf.d/.", os.path.join(folder, "etc/apt/apt.conf.d/"))
    host("cp", "/etc/resolv.conf", os.path.join(folder, "etc/resolv.conf"))


def network_free():
    """Returns the third octet of a network that no interface uses."""
    used = host("ip", "-o", "-4", "addr")
    return next(octet for octet in range(1, 250) if f" 10.213.{octet}." not in used)


class Machine:
    """A machine. root is its file system, which its tests may read and write."""

    def __init__(self, base, root, name, host_name="imgward.test"):
        self.root, self.name, self.host_name = root, name, host_name
        self.octet = self.process = self.pid = self.memory_bytes = self.cpus = None
        # systemd refuses tables of other file systems, so the folder is a copy, which keeps owners and modes.
        shutil.rmtree(root, ignore_errors=True)
        host("cp", "-a", "--reflink=auto", base, root)
        with open(os.path.join(root, "etc/hosts"), "w", encoding="ascii") as file:
            file.write(f"127.0.0.1 localhost\n127.0.1.1 {host_name}\n::1 localhost ip6-localhost\n")
        with open(os.path.join(root, "etc/hostname"), "w", encoding="ascii") as file:
            file.write(host_name.partition(".")[0] + "\n")

    @property
    def address(self):
        return f"10.213.{self.octet}.2"

    @property
    def gateway(self):
        """Returns the address of this machine on the virtual cable."""
        return f"10.213.{self.octet}.1"

    # ---- power

    def up(self):
        self.octet = self.octet or network_free()
        # With control groups of version 1 nspawn mounts the memory controller read-only; a machine may write its part.
        is_old = os.path.isdir(MEMORY)
        init = ["/init-test"] if is_old else ["-b"]
        if is_old:
            with open(os.path.join(self.root, "init-test"), "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\nmount -o remount,bind,rw {MEMORY}\nexec /sbin/init\n")
            os.chmod(os.path.join(self.root, "init-test"), 0o755)
        log = open(self.root + ".log", "ab")
        words = ["systemd-nspawn", "-q", "-D", self.root, "-M", self.name, "--register=no", "--keep-unit",
                 "--network-veth", "--hostname=" + self.host_name.partition(".")[0], *init]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                        env={**os.environ, "SYSTEMD_SECCOMP": "0"}, preexec_fn=self.groups_enter)
        log.close()
        self.wait(self.is_started, 60, "its first process")
        self.wire()
        self.wait(lambda: self.run("systemctl", "is-system-running", check=False).strip() in ("running", "degraded"), 90,
                  "systemd to finish its start")

    def groups_enter(self):
        """Moves the new process, in which it runs, to the control groups of the machine."""
        for controller, name, value in (("memory", "memory.limit_in_bytes", self.memory_bytes), ("cpuset", "cpuset.cpus", self.cpus)):
            group = f"/sys/fs/cgroup/{controller}/imgward-{self.name}"
            if os.path.isdir(os.path.dirname(group)) and (controller == "memory" or value):
                os.makedirs(group, exist_ok=True)
                if controller == "cpuset":
                    write(group + "/cpuset.mems", "0")
                if value:
                    write(f"{group}/{name}", str(value))
                write(group + "/cgroup.procs", "0")

    def is_started(self):
        if self.process.poll() is not None:
            with open(self.root + ".log", encoding="utf-8", errors="replace") as file:
                raise Failed(f"{self.name} did not start: {file.read()[-2000:]}")
        child = host("pgrep", "-P", str(self.process.pid), check=False).split()
        self.pid = child[0] if child else None
        return self.pid and f"host0" in host("nsenter", "-t", self.pid, "-n", "ip", "link", check=False) \
            and host("nsenter", "-t", self.pid, "-p", "-m", "cat", "/proc/1/comm", check=False).strip() == "systemd"

    def wire(self):
        outside = f"ve-{self.name}"
        host("ip", "addr", "add", f"{self.gateway}/24", "dev", outside)
        host("ip", "link", "set", outside, "up")
        for words in (f"ip addr add {self.address}/24 dev host0", "ip link set host0 up",
                      f"ip route add default via {self.gateway}"):
            host("nsenter", "-t", self.pid, "-n", *words.split())
        write("/proc/sys/net/ipv4/ip_forward", "1")
        table = f"imgward_{self.octet}"
        network = f"10.213.{self.octet}.0/24"
        host("nft", "-f", "-", input=f"table ip {table} {{\nchain out {{\ntype nat hook postrouting priority 100\n"
             f"ip saddr {network} ip daddr != {network} masquerade\n}}\n}}\n")

    def unwire(self):
        host("nft", "delete", "table", "ip", f"imgward_{self.octet}", check=False)

    def down(self, is_hard=False):
        """Shuts the machine down, or simulates a loss of power."""
        if self.process is None:
            return
        if is_hard:
            host("kill", "-9", self.pid, check=False)
        else:
            self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = self.pid = None
        self.unwire()

    def reboot(self, is_hard=False):
        self.down(is_hard)
        self.up()

    def delete(self):
        self.down()
        shutil.rmtree(self.root, ignore_errors=True)
        for controller in ("memory", "cpuset"):
            group = f"/sys/fs/cgroup/{controller}/imgward-{self.name}"
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass

    # ---- commands

    def words(self, *command):
        if self.pid is None:
            raise Failed(f"{self.name} is switched off")
        return ["nsenter", "-t", self.pid, "-m", "-u", "-i", "-n", "-p", "-C", "chroot", "/", "env", "-i", "PATH=" + PATH, "HOME=/root",
                "TERM=dumb", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *command]

    def run(self, *command, check=True, seconds=900, text=None):
        """Runs a command as root; returns output and errors."""
        done = subprocess.run(self.words(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              input=text, text=True, errors="replace", **({} if text is not None else {"stdin": subprocess.DEVNULL}))
        if check and done.returncode != 0:
            raise Failed(f"{' '.join(command)[:300]}: {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def shell(self, script, **more):
        return self.run("bash", "-euo", "pipefail", "-c", script, **more)

    def wait(self, question, seconds, what):
        end = time.monotonic() + seconds
        while not (answer := question()):
            if time.monotonic() > end:
                raise Failed(f"{self.name} waited {seconds} s for {what}")
            time.sleep(0.2)
        return answer

    def path(self, inside):
        return os.path.join(self.root, inside.lstrip("/"))

    def read(self, inside):
        with open(self.path(inside), encoding="utf-8") as file:
            return file.read()

    def main_pid(self, unit):
        return self.run("systemctl", "show", "-P", "MainPID", unit).strip()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
