"""The shell session of README.md, as a reader pastes it, and the script that it runs, on a private stack."""
import os
import re
import subprocess

import pytest

import pictures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "doc", "examples", "protect.sh")
SHELLS = [["bash"], ["dash"], ["busybox", "sh"]]
shells = pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])


def source(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


@pytest.fixture
def protect(stack, tmp_path):
    """Runs the script in a folder with a picture. A wrapper of curl records the arguments, and fails if FAIL is one."""
    (tmp_path / "curl").write_text(f'#!/bin/sh\nfor word; do echo "$word" >>{tmp_path}/words; [ "$word" != "$FAIL" ] || exit 18; done\n'
                                   'exec /usr/bin/curl "$@"\n', encoding="utf-8")
    (tmp_path / "curl").chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "FAIL": "nothing", "IMGWARD_KEY": stack.key("pro"),
                 **{name: stack.environment[name] for name in ("IMGWARD_URL", "IMGWARD_CA")}}

    def run(picture, shell=("dash",), words=("holiday.jpg",), **environment):
        (tmp_path / "holiday.jpg").write_bytes(picture)
        return subprocess.run([*shell, SCRIPT, *words], cwd=tmp_path, env={**variables, **environment}, capture_output=True, text=True,
                              timeout=120)
    return run


def test_the_session_of_the_readme_protects_a_picture(stack, tmp_path):
    os.symlink(stack.environment["IMGWARD_VAR"], tmp_path / "var")
    os.symlink(os.path.join(ROOT, "doc"), tmp_path / "doc")
    (tmp_path / "holiday.jpg").write_bytes(pictures.jpeg(320, 160))
    session = re.search(r"```sh\n(.*?)```", source("README.md"), re.S)[1]
    done = subprocess.run(["dash"], input=session, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert re.fullmatch(r"holiday\.jpg: protection (strong|medium|weak), \d+ %; written to protected-holiday\.jpg\n", done.stdout), done


@shells
def test_another_picture_of_the_same_name_is_protected(protect, shell, tmp_path):
    """With a fixed idempotency key, the first order was replayed, and the result was of the wrong picture."""
    for width in (320, 200):
        picture = pictures.jpeg(width, 160)
        done = protect(picture, shell)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert 25 < pictures.psnr(picture, (tmp_path / "protected-holiday.jpg").read_bytes()) < 60


@shells
def test_a_failure_stops_with_a_message_and_leaves_no_file(protect, shell, tmp_path):
    whole = pictures.jpeg(100, 100)
    for word, done in (
            ("holiday.jpg: IMAGE_CORRUPT: ", protect(pictures.jpeg(400, 300)[:4000], shell)),
            ("not uploaded: UNSUPPORTED_MEDIA_TYPE: ", protect(b"no picture", shell)),
            ("not created: AUTH_TOKEN_INVALID_FORMAT: ", protect(whole, shell, IMGWARD_KEY="wrong")),
            ("IMGWARD_KEY: is not set", protect(whole, shell, IMGWARD_KEY="")),
            ("not created: no answer", protect(whole, shell, IMGWARD_URL="https://127.0.0.1:1")),
            ("not created: no answer", protect(whole, shell, IMGWARD_CA="")),
            ("nothing.jpg: no such file", protect(whole, shell, ["nothing.jpg"])),
            ("nowhere/result.jpg", protect(whole, shell, ["holiday.jpg", "nowhere/result.jpg"])),
            ("usage: ", protect(whole, shell, []))):
        assert done.returncode != 0 and word in done.stderr and done.stdout == "", done
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("protected")]


def test_an_interrupted_download_keeps_the_earlier_result(protect, tmp_path):
    result = tmp_path / "protected-holiday.jpg"
    result.write_bytes(b"earlier")
    done = protect(pictures.jpeg(100, 100), FAIL="-o")
    assert done.returncode == 1 and "not downloaded" in done.stderr, done
    assert result.read_bytes() == b"earlier" and not (tmp_path / "protected-holiday.jpg.part").exists()


def test_a_name_with_blanks_is_sent_and_the_key_is_no_argument_of_curl(protect, stack, tmp_path):
    picture = pictures.png(120, 90)
    (tmp_path / "Ada's \"cat\".png").write_bytes(picture)
    done = protect(picture, words=["./Ada's \"cat\".png", "my result.png"])
    assert done.stdout.startswith("Ada's \"cat\".png: protection ") and done.stdout.endswith("; written to my result.png\n"), done
    words = (tmp_path / "words").read_text(encoding="utf-8")
    assert "/orders/anti-ai" in words and stack.key("pro") not in words


@pytest.mark.parametrize("name", ["photo[1].png", "photo[1-3].png", "{a,b}.png"])
def test_a_name_with_brackets_is_one_file(protect, tmp_path, name):
    picture = pictures.png(120, 90)
    (tmp_path / name).write_bytes(picture)
    done = protect(picture, words=[name])
    assert done.returncode == 0 and done.stdout.startswith(f"{name}: protection "), done
    assert (tmp_path / f"protected-{name}").stat().st_size > 0


def test_the_first_order_of_the_installation_runs_with_the_installed_script(stack, tmp_path):
    """packaging/test-host runs the same block on a booted Debian. Here the files are in the folders of "make install"."""
    block = re.search(r"```sh\n# first-order\n(.*?)```", source("doc", "install.md"), re.S)[1]
    (tmp_path / "doc").mkdir()
    os.symlink(ROOT, tmp_path / "doc" / "imgward")
    (tmp_path / "imgwardctl").write_text(f'#!/bin/sh\nexec {stack.environment["IMGWARD_CTL"]} --config {stack.environment["IMGWARD_CONFIG"]} "$@"\n',
                                         encoding="utf-8")
    (tmp_path / "imgwardctl").chmod(0o755)
    stack.ctl("account", "create", "--plan", "pro", "first")
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SHARE": str(tmp_path), "IMGWARD_CA": stack.environment["IMGWARD_CA"],
                 "HOST": stack.url.removeprefix("https://"), "PICTURE": os.path.join(ROOT, "web", "samples", "before.webp")}
    done = subprocess.run(["bash", "-e"], input=block, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "protect.sh" not in done.stderr, done
    # The share varies by a percentage point with the seed of the order.
    printed = re.search(r"^    (before\.webp: protection \w+, )\d+( %; .*)$", source("doc", "install.md"), re.M)
    assert re.fullmatch(re.escape(printed[1]) + r"\d+" + re.escape(printed[2]) + "\n", done.stdout), done


@pytest.mark.parametrize("name", ["README.md", "doc/install.md", "doc/api.md"])
def test_links_lead_to_files_that_are_installed(name):
    listed = source("doc", "Makefile.inc").partition("nobase_dist_doc_DATA")[2].partition("nodist_man")[0].split()
    found = re.findall(r"\]\(([^)#:]+)[)#]|src=\"([^\":]+)\"", source(name))
    links = {os.path.normpath(os.path.join(os.path.dirname(name), one or other)) for one, other in found}
    assert links - set(listed) == set()


def test_the_command_that_the_demo_prints_has_the_key_of_its_orders():
    plan = re.search(r'stack\.key\("(\w+)"\)', source("tests", "stack", "demo.py"))[1]
    assert re.findall(r"IMGWARD_KEY_(\w+)", source("tests", "stack", "demo.sh")) == [plan.upper()]
