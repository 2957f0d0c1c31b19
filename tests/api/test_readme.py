"""The shell session of README.md, as a reader pastes it, on a private stack."""
import os
import re
import subprocess

import pytest

import pictures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHELLS = ["bash", "dash"]


def session():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.search(r"## Protect a picture\n.*?```sh\n(.*?)```", file.read(), re.S).group(1)


@pytest.fixture
def paste(stack, tmp_path):
    """Runs the session in a folder with a picture; with another line in place of the last one."""
    os.symlink(stack.environment["IMGWARD_VAR"], tmp_path / "var")

    def run(picture, shell="bash", last=None):
        if picture is not None:
            (tmp_path / "holiday.jpg").write_bytes(picture)
        words = session() if last is None else session().replace("\nprotect holiday.jpg protected.jpg\n", f"\n{last}\n")
        return subprocess.run([shell], input=words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    run.result = tmp_path / "protected.jpg"
    return run


@pytest.mark.parametrize("shell", SHELLS)
def test_the_session_protects_the_picture_and_repeats_with_another_one(paste, shell):
    """A fixed idempotency key once replayed the first order, and the result was of the wrong picture."""
    for width in (320, 200):
        picture = pictures.jpeg(width, 160)
        done = paste(picture, shell)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert re.fullmatch(r"holiday\.jpg: protection (strong|medium|weak), \d+ %\n", done.stdout), done
        assert 25 < pictures.psnr(picture, paste.result.read_bytes()) < 60


@pytest.mark.parametrize("shell", SHELLS)
def test_a_failure_stops_with_a_message_and_leaves_no_file(paste, shell):
    cut = paste(pictures.jpeg(400, 300)[:4000], shell)
    assert cut.returncode == 1 and "holiday.jpg: IMAGE_CORRUPT: " in cut.stderr, cut
    text = paste(b"no picture", shell)
    assert text.returncode == 1 and "UNSUPPORTED_MEDIA_TYPE" in text.stderr, text
    key = paste(pictures.jpeg(100, 100), shell, last="IMGWARD_KEY_PRO=wrong\nprotect holiday.jpg protected.jpg")
    assert key.returncode == 1 and "AUTH_TOKEN_INVALID_FORMAT" in key.stderr, key
    missing = paste(None, shell, last="protect nothing.jpg protected.jpg")
    assert missing.returncode == 1 and "nothing.jpg" in missing.stderr, missing
    assert not paste.result.exists()


def test_the_command_that_the_demo_prints_has_the_key_of_its_orders():
    texts = []
    for name in ("demo.py", "demo.sh"):
        with open(os.path.join(ROOT, "tests", "stack", name), encoding="utf-8") as file:
            texts.append(file.read())
    plan = re.search(r'stack\.key\("(\w+)"\)', texts[0])[1]
    assert re.findall(r"IMGWARD_KEY_(\w+)", texts[1]) == [plan.upper()]
