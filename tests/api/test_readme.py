"""The README's session, run as written."""
import os
import re
import subprocess

import pictures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def session():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.search(r"```sh\n(.*?)```", file.read(), re.S)[1]


def test_the_session_of_the_readme_ends_with_a_protected_picture(stack, tmp_path):
    picture = pictures.jpeg(320, 240)
    (tmp_path / "holiday.jpg").write_bytes(picture)
    # The page asks the reader to repeat a command until the order is finished; this script waits.
    script = session().replace(". var/dev.env", f". {stack.environment['IMGWARD_VAR']}/dev.env").replace(
        "# 4.", 'until [ "$(api $IMGWARD_URL/api/v2/orders/$ORDER | jq -r .data.status)" = complete ]; do sleep 0.2; done\n# 4.')
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    assert 25 < pictures.psnr(picture, (tmp_path / "protected.jpg").read_bytes()) < 60


def test_the_command_that_the_demo_prints_has_the_key_of_its_orders():
    texts = []
    for name in ("demo.py", "demo.sh"):
        with open(os.path.join(ROOT, "tests", "stack", name), encoding="utf-8") as file:
            texts.append(file.read())
    plan = re.search(r'stack\.key\("(\w+)"\)', texts[0])[1]
    assert re.findall(r"IMGWARD_KEY_(\w+)", texts[1]) == [plan.upper()]
