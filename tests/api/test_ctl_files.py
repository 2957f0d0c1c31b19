"""Files that imgwardctl writes where another file exists."""
import os
import stat
import subprocess

import pytest

import pictures


@pytest.fixture
def image(stack, tmp_path):
    """Runs an image command that reads in.jpg and writes OUT."""
    (tmp_path / "in.jpg").write_bytes(pictures.jpeg(640, 640, seed=7))
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)

    def run(command, out, source="in.jpg"):
        more = {"protect": [], "embed": ["--key-file", str(tmp_path / "key"), "--id", "00000000000000a7"]}[command]
        return subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "image", command, *more, str(tmp_path / source), str(out)],
                              capture_output=True, text=True, timeout=120, umask=0o022)
    return run


COMMANDS = ["protect", "embed"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_special_file_is_refused_and_stays(image, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    out = [tmp_path / "pipe"]
    if os.getuid() == 0:
        os.mknod(tmp_path / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        os.symlink("full", tmp_path / "link-to-full")
        out += [tmp_path / "full", tmp_path / "link-to-full"]
    for path in [*out, "/dev/stdout"]:
        kind = stat.S_IFMT(os.stat(path).st_mode) if path != "/dev/stdout" else None
        done = image(command, path)
        assert done.returncode == 2 and f"{path}: " in done.stderr, (path, done)
        assert kind is None or ("is not a regular file; name a file" in done.stderr and stat.S_IFMT(os.stat(path).st_mode) == kind)
    assert sorted(os.listdir(tmp_path)) == sorted(["in.jpg", "key", *(os.path.basename(path) for path in out)])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_symbolic_link_is_followed(image, tmp_path, command):
    (tmp_path / "folder").mkdir()
    real = tmp_path / "folder" / "real.jpg"
    real.write_bytes(b"before")
    os.symlink("folder/real.jpg", tmp_path / "link.jpg")
    os.symlink("nothing.jpg", tmp_path / "broken.jpg")
    done = image(command, tmp_path / "link.jpg")
    assert done.returncode == 0 and os.readlink(tmp_path / "link.jpg") == "folder/real.jpg", done
    assert real.read_bytes().startswith(b"\xff\xd8\xff") and os.listdir(tmp_path / "folder") == ["real.jpg"]
    done = image(command, tmp_path / "broken.jpg")
    assert done.returncode == 2 and "is a symbolic link whose target does not exist; name a file" in done.stderr, done
    assert not (tmp_path / "nothing.jpg").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_mode_and_owner_are_handed_on(image, tmp_path, command):
    def mode(name):
        return stat.S_IMODE((tmp_path / name).stat().st_mode)
    assert image(command, tmp_path / "new.jpg").returncode == 0 and mode("new.jpg") == 0o644
    (tmp_path / "in.jpg").chmod(0o600)
    assert image(command, tmp_path / "private.jpg").returncode == 0 and mode("private.jpg") == 0o600
    (tmp_path / "new.jpg").chmod(0o640)
    if os.getuid() == 0:
        os.chown(tmp_path / "new.jpg", 65534, 65534)
    before = (tmp_path / "new.jpg").stat()
    assert image(command, tmp_path / "new.jpg").returncode == 0
    after = (tmp_path / "new.jpg").stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid) and after.st_ino != before.st_ino
    assert image(command, tmp_path / "in.jpg").returncode == 0 and mode("in.jpg") == 0o600


def test_a_rotated_key_file_stays_a_symbolic_link(stack, tmp_path):
    def secret(*words):
        return subprocess.run([stack.environment["IMGWARD_CTL"], "secret", *words], capture_output=True, text=True, timeout=60)
    assert secret("signing", str(tmp_path / "real.keys")).returncode == 0
    os.symlink("real.keys", tmp_path / "signing.keys")
    assert secret("signing", "--rotate", str(tmp_path / "signing.keys")).returncode == 0
    assert os.readlink(tmp_path / "signing.keys") == "real.keys" and (tmp_path / "real.keys").read_text().count(":") >= 2
    assert stat.S_IMODE((tmp_path / "real.keys").stat().st_mode) == 0o600
    # A secret never replaces an existing file.
    for words in (["signing"], ["sealing"]):
        os.symlink("nothing", tmp_path / words[0])
        assert secret(*words, str(tmp_path / words[0])).returncode == 2 and not (tmp_path / "nothing").exists()
