"""imgwardctl with the running stack: accounts, keys, orders, the queue, doctor, migrations."""
import io
import json
import os
import shutil
import subprocess
import uuid

import numpy
import pytest
from PIL import Image

import pictures
from client import Client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQL = os.path.join(ROOT, "sql")


def ctl(stack, *words, config=None, folder=None):
    return subprocess.run([stack.environment["IMGWARD_CTL"], "--config",
                           config or stack.environment["IMGWARD_CONFIG"], *words],
                          capture_output=True, text=True, timeout=180, cwd=folder)


def owner_config(stack):
    """The configuration of the database user that may alter tables."""
    return os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "owner.conf")


@pytest.fixture
def account(stack):
    name = "ctl-" + uuid.uuid4().hex[:8]
    return name, ctl(stack, "account", "create", "--plan", "pro", name).stdout.split()[-1]


def test_an_account_is_made_once_listed_and_put_on_another_plan(stack, account):
    name, number = account
    twin = ctl(stack, "account", "create", name)
    assert twin.returncode == 2 and name in twin.stderr
    row = next(row for row in json.loads(ctl(stack, "account", "list", "--json").stdout) if row["name"] == name)
    assert (row["id"], row["plan"], row["requestsPerMinute"], row["isOverridden"]) == (int(number), "pro", 300, False)
    assert name in ctl(stack, "account", "list").stdout
    assert ctl(stack, "account", "plan", name, "enterprise", "--requests-per-minute", "7").returncode == 0
    row = next(row for row in json.loads(ctl(stack, "account", "list", "--json").stdout) if row["name"] == name)
    assert (row["plan"], row["requestsPerMinute"], row["isOverridden"]) == ("enterprise", 7, True)
    assert ctl(stack, "account", "plan", number, "free").returncode == 0
    assert ctl(stack, "account", "plan", name, "golden").returncode == 2
    assert ctl(stack, "account", "plan", "nobody-" + name, "free").returncode == 2


@pytest.mark.parametrize("words, sentence", [
    (["acount", "list"], 'unknown command "acount list"; did you mean "account list"?'),
    (["account", "lst"], 'unknown command "account lst"; did you mean "account list"?'),
    (["acount"], 'unknown command "acount"; did you mean "account"?'),
    (["frobnicate"], 'unknown command "frobnicate"; imgwardctl help lists the commands.'),
    (["account"], "Usage: imgwardctl account COMMAND"),
    (["account", "plan", "x"], "1 argument was given; the command takes ACCOUNT PLAN."),
    (["account", "plan", "x", "golden"], 'The account "x" does not exist'),
    (["order", "find", "--statsu", "x"], "unknown option --statsu; did you mean --status?"),
    (["order", "find", "--status", "done"], '--status is "done" but must be pending, inProgress, complete, failed, detected, undetected or expired.'),
    (["image", "protect", "--strength", "hgih", "a", "b"], '--strength is "hgih" but must be low, standard or high.'),
    (["user", "create", "--role", "king", "a@x.example", "b"], '--role is "king" but must be owner or member.'),
    (["help", "key", "crate"], 'unknown command "key crate"; did you mean "key create"?'),
])
def test_a_mistake_is_answered_with_the_remedy(stack, words, sentence):
    done = ctl(stack, *words)
    assert done.returncode == 2 and sentence in done.stderr and done.stdout == "", done


@pytest.mark.parametrize("words, sentences", [
    (["--version"], ["imgward "]),
    (["-V"], ["imgward "]),
    (["--help"], ["Accounts, keys and users:", "  account create NAME", "Exit codes:"]),
    (["help"], ["Accounts, keys and users:"]),
    (["account", "--help"], ["Usage: imgwardctl account COMMAND", "  account rename ACCOUNT NAME"]),
    (["help", "account"], ["Usage: imgwardctl account COMMAND"]),
    (["help", "key", "create"], ["--expires-days N", "Example:\n  imgwardctl key create"]),
    (["key", "create", "--name", "x", "-h"], ["Usage: imgwardctl key create"]),
    (["doctor", "--help"], ["Usage: imgwardctl doctor"]),
])
def test_help_is_on_every_level(stack, words, sentences):
    done = ctl(stack, *words)
    assert done.returncode == 0 and all(sentence in done.stdout for sentence in sentences) and done.stderr == "", done


@pytest.mark.parametrize("line, values", [
    ("imgwardctl ke", "key"), ("imgwardctl key re", "revoke"), ("imgwardctl image protect --strength ", "low standard high"),
    ("imgwardctl store copy l", "local"), ("imgwardctl user create --role m", "member"), ("imgwardctl account create --p", "--plan"),
])
def test_bash_completes_words_options_and_values(stack, line, values):
    script = ctl(stack, "completion").stdout + """
        read -r -a COMP_WORDS <<<"$1"; [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _imgwardctl; echo $(printf '%s\n' "${COMPREPLY[@]}" | sort -u)"""
    done = subprocess.run(["bash", "-c", script, "bash", line], capture_output=True, text=True, timeout=60, cwd="/")
    assert sorted(done.stdout.split()) == sorted(values.split()), done


def test_an_account_is_renamed(stack, account):
    name, number = account
    assert ctl(stack, "account", "rename", name, name + "-new").stdout == f"account {number}: {name}-new\n"
    assert ctl(stack, "account", "show", name).returncode == 2
    other = "ctl-" + uuid.uuid4().hex[:8]
    ctl(stack, "account", "create", other)
    twin = ctl(stack, "account", "rename", other, name + "-new")
    assert twin.returncode == 2 and f'An account with the name "{name}-new" already exists.' in twin.stderr, twin


def test_words_that_are_not_ascii_name_nothing(stack, account):
    name, _ = account
    assert "no plan" in ctl(stack, "account", "plan", name, "größer").stderr
    assert "No key" in ctl(stack, "key", "revoke", "iw_live_ääääääää").stderr
    found = ctl(stack, "order", "find", "--request-id", "ä")
    assert found.returncode == 0 and found.stdout.count("\n") == 3, found.stdout + found.stderr


def test_a_key_that_could_not_be_shown_is_a_failure(stack, account):
    with open("/dev/full", "w", encoding="ascii") as full:
        made = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "key",
                               "create", account[0]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=180)
    assert made.returncode == 2 and "could not be written" in made.stderr, made


def test_only_one_of_many_concurrent_commands_makes_a_secret(stack, tmp_path):
    """Only one process may succeed, because another file would invalidate marks, signatures or webhook secrets."""
    for words in (("image", "key"), ("secret", "signing"), ("secret", "sealing")):
        place = tmp_path / words[1]
        makers = [subprocess.Popen([stack.environment["IMGWARD_CTL"], *words, str(place)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL) for _ in range(8)]
        assert sorted(maker.wait(timeout=180) for maker in makers) == [0] + [2] * 7
        kept = place.read_bytes()
        assert ctl(stack, *words, str(place)).returncode == 2 and place.read_bytes() == kept
        assert place.stat().st_mode & 0o777 == 0o600 and len(list(tmp_path.iterdir())) == 1
        place.unlink()


def test_a_number_in_a_name_does_not_stand_for_another_account(stack, account):
    _, number = account
    bad = ctl(stack, "account", "create", "a\tb")
    assert bad.returncode == 2 and "control" in bad.stderr
    assert ctl(stack, "account", "create", "x" * 101).returncode == 2
    assert ctl(stack, "key", "list", number).returncode == 0


def test_a_key_is_shown_once_and_only_its_digest_is_kept(stack, account):
    name, _ = account
    made = ctl(stack, "key", "create", "--name", "first", name)
    key = made.stdout.strip()
    assert len(key) == 51 and key.startswith("iw_live_") and key[8:].isalnum()
    listed = json.loads(ctl(stack, "key", "list", "--json", name).stdout)
    assert [(row["name"], row["prefix"], row["state"]) for row in listed] == [("first", key[:16], "valid")]
    assert key not in json.dumps(listed) and key not in ctl(stack, "key", "list").stdout
    kept = stack.sql(f"SELECT LOWER(HEX(digest)) = SHA2('{key}', 256) FROM api_keys WHERE id = {listed[0]['id']}")
    assert kept == [["1"]]
    assert Client(stack, key).list().status == 200


def test_two_keys_are_valid_together_and_a_revoked_one_ends(stack, account):
    name, _ = account
    keys = [ctl(stack, "key", "create", name).stdout.strip() for _ in range(2)]
    assert [Client(stack, key).list().status for key in keys] == [200, 200]
    fresh = ctl(stack, "key", "create", name).stdout.strip()
    assert ctl(stack, "key", "revoke", fresh[:16]).returncode == 0
    assert Client(stack, fresh).list().code == "AUTH_TOKEN_INVALID"
    assert Client(stack, keys[0]).list().status == 200
    states = [row["state"] for row in json.loads(ctl(stack, "key", "list", "--json", name).stdout)]
    assert states == ["valid", "valid", "revoked"]
    assert ctl(stack, "key", "revoke", "iw_live_nothing1").returncode == 2
    assert ctl(stack, "key", "create", "--expires-days", "0", name).returncode == 2


def test_a_suspended_account_is_forbidden_until_it_is_resumed(stack, account):
    name, _ = account
    assert ctl(stack, "account", "suspend", name).returncode == 0
    key = ctl(stack, "key", "create", name).stdout.strip()
    assert Client(stack, key).list().code == "AUTH_FORBIDDEN"
    assert ctl(stack, "account", "resume", name).returncode == 0
    assert Client(stack, ctl(stack, "key", "create", name).stdout.strip()).list().status == 200


def test_an_order_is_shown_with_all_that_belongs_to_it(client, stack, jpeg):
    order = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg[:400])])["orderId"]
    shown = json.loads(ctl(stack, "order", "show", order, "--json").stdout)
    assert (shown["orderId"], shown["status"], shown["completed"], shown["failed"]) == (order, "complete", 1, 1)
    assert [file["status"] for file in shown["files"]] == ["complete", "failed"]
    assert [job["status"] for job in shown["jobs"]] == ["done", "refused"] and len(shown["results"]) == 1
    times = [row["at"] for row in shown["history"]]
    assert times == sorted(times) and shown["history"][0]["what"] == "created"
    text = ctl(stack, "order", "show", order).stdout
    assert "IMAGE_CORRUPT" in text and "protect of file" in text
    assert ctl(stack, "order", "show", "12").returncode == 2
    assert ctl(stack, "order", "show", "twelve").returncode == 2


def test_a_low_limit_of_prepared_statements_is_supported(client, stack):
    """max_prepared_stmt_count applies to the whole server, so each program closes old statements to prepare new ones."""
    order = client.create().data["orderId"]
    before = stack.sql("SELECT @@GLOBAL.max_prepared_stmt_count")[0][0]
    try:
        for _ in range(5):  # another process may use the free statements
            kept = int(stack.sql("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")[0][1])
            stack.sql(f"SET GLOBAL max_prepared_stmt_count = {kept + 2}")
            shown = ctl(stack, "order", "show", order)
            if shown.returncode == 0:
                break
    finally:
        stack.sql(f"SET GLOBAL max_prepared_stmt_count = {before}")
    assert shown.returncode == 0 and order in shown.stdout, shown.stderr


def test_the_longest_allowed_list_is_printed(stack):
    account, count = stack.account_new().account, 100000
    stack.sql(f"""
        INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count, created_at, updated_at)
        SELECT ({account} << 22) + seq, {account}, 'antiAi', 'failed', CONCAT('bulk ', seq), CONCAT('bulk-', seq), UNHEX(SHA2(seq, 256)),
               'high', 1, NOW(3), NOW(3) FROM seq_1_to_{count}""")
    try:
        found = ctl(stack, "order", "find", "--account", account, "--most", str(count), "--json")
        assert found.returncode == 0 and len(json.loads(found.stdout)) == count, found.stderr
    finally:
        stack.sql(f"DELETE FROM orders WHERE account_id = {account}")


def test_the_queue_is_counted(client, stack, jpeg):
    client.order_whole([("a.jpg", jpeg)])
    status = json.loads(ctl(stack, "queue", "status", "--json").stdout)
    done = next(row for row in status["jobs"] if (row["kind"], row["state"]) == ("protect", "done"))
    assert done["count"] >= 1 and status["wakeups"] is not None
    assert "protect" in ctl(stack, "queue", "status").stdout


def test_doctor_accepts_a_stack_and_reports_errors(stack, tmp_path):
    # The stack's api.nginx_file, not that of the machine.
    doctor = ("doctor", "--directory", SQL)
    well = ctl(stack, *doctor)
    assert well.returncode == 0, well.stdout + well.stderr
    assert all(line.split()[-1] and " ok " in line for line in well.stdout.splitlines()), well.stdout
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        lines = file.read().splitlines()
    sick = tmp_path / "sick.conf"
    sick.write_text("\n".join("[api]\nprocesses = 1024" if line == "[api]" else
                              "socket = /nowhere/redis.sock" if line.endswith("redis.sock") else
                              "image_program = /nowhere/image\nprocesses = 256" if line.startswith("image_program") else
                              "[image]\nmemory_max_bytes = 68719476736" if line == "[image]" else line
                              for line in lines) + "\n")
    found = ctl(stack, *doctor, config=str(sick))
    wrong = [line.split()[0] for line in found.stdout.splitlines() if " WRONG " in line]
    assert found.returncode == 1 and wrong == ["connections", "redis", "image", "memory"], found.stdout
    assert "256 image processes may need 25166080 MiB" in found.stdout, found.stdout


def test_doctor_takes_a_relative_path_of_the_configuration_of_nginx(stack):
    folder, name = os.path.split(os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "nginx.conf"))
    asked = ctl(stack, "doctor", "--directory", SQL, "--nginx", name, folder=folder)
    assert asked.returncode == 0 and "configuration cannot be read" not in asked.stdout, asked.stdout + asked.stderr
    missing = ctl(stack, "doctor", "--directory", SQL, "--nginx", "nothing.conf", folder=folder)
    assert missing.returncode == 1 and "configuration cannot be read" in missing.stdout, missing.stdout


def test_migrations_are_applied_once_and_a_changed_file_is_refused(stack, tmp_path):
    config = owner_config(stack)
    again = ctl(stack, "migrate", "--directory", SQL, config=config)
    assert again.returncode == 0 and "0 applied" in again.stdout
    dry = ctl(stack, "migrate", "--dry-run", "--directory", SQL, config=config)
    assert dry.returncode == 0 and "0001_init.sql: applied" in dry.stdout
    for name in sorted(os.listdir(SQL)):
        shutil.copy(os.path.join(SQL, name), tmp_path)
    last = tmp_path / "9998_way.sql"
    last.write_text("CREATE TABLE way_one (id INT); -- one; two\nINSERT INTO way_one VALUES (1);\nNOT SQL AT ALL;\n"
                    "CREATE TABLE way_two (id INT);\n")
    dry = ctl(stack, "migrate", "--dry-run", "--directory", str(tmp_path), config=config)
    assert "9998_way.sql: pending, 4 statements" in dry.stdout
    assert stack.sql("SHOW TABLES LIKE 'way_one'") == []
    failed = ctl(stack, "migrate", "--directory", str(tmp_path), config=config)
    assert failed.returncode == 2 and "9998_way.sql, line 3" in failed.stderr
    begun = ctl(stack, "migrate", "--dry-run", "--directory", str(tmp_path), config=config)
    assert "9998_way.sql: started, 2 of 4 statements done" in begun.stdout
    last.write_text("SELECT 1;\n")
    changed = ctl(stack, "migrate", "--directory", str(tmp_path), config=config)
    assert changed.returncode == 2 and "changed" in changed.stderr
    assert stack.sql("SELECT COUNT(*) FROM way_one") == [["1"]]
    gone = ctl(stack, "migrate", "--directory", SQL, config=config)
    assert gone.returncode == 2 and "older" in gone.stderr
    stack.sql("DELETE FROM schema_migrations WHERE version = 9998; DROP TABLE way_one")


def test_two_concurrent_migrations_apply_once(stack, tmp_path):
    config = owner_config(stack)
    for name in sorted(os.listdir(SQL)):
        shutil.copy(os.path.join(SQL, name), tmp_path)
    (tmp_path / "9999_twins.sql").write_text("CREATE TABLE twins (id INT);\nDO SLEEP(1);\n")
    command = [stack.environment["IMGWARD_CTL"], "--config", config, "migrate", "--directory", str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    last_lines = sorted(process.communicate(timeout=180)[0].splitlines()[-1] for process in both)
    stack.sql("DELETE FROM schema_migrations WHERE version = 9999; DROP TABLE twins")
    assert [process.returncode for process in both] == [0, 0]
    assert last_lines[0].startswith("migrate: 0 applied") and last_lines[1].startswith("migrate: 1 applied")


@pytest.fixture
def alone(stack, tmp_path):
    """Runs imgwardctl as a person without the service does: without a configuration, in a folder with two pictures and a text."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(pictures.png(400, 300))
    (tmp_path / "in" / "b.jpg").write_bytes(pictures.jpeg(420, 320))
    (tmp_path / "in" / "readme.txt").write_text("no picture")
    environment = {name: value for name, value in os.environ.items() if name != "IMGWARD_CONFIG"}
    return lambda *words: subprocess.run([stack.environment["IMGWARD_CTL"], *words], capture_output=True, text=True,
                                         timeout=180, cwd=tmp_path, env=environment)


def test_the_configuration_is_named_in_two_ways(alone):
    assert "--config needs a file." in alone("--config").stderr
    assert "/nowhere.conf" in alone("--config=/nowhere.conf", "status").stderr
    assert "/nowhere.conf" in alone("--config", "/nowhere.conf", "status").stderr


def test_pictures_of_a_folder_are_marked_and_read_without_a_configuration(alone, tmp_path):
    assert alone("image", "key", "my.key").returncode == 0
    done = alone("image", "embed", "--key-file", "my.key", "--text", "sent to Ada", "in", "out")
    assert done.returncode == 0 and "1 files that are not pictures were skipped" in done.stderr, done
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.png", "b.jpg"]
    done = alone("image", "extract", "--key-file", "my.key", "--text", "sent to Ada", "out", "in/a.png")
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and [(line[0], line[2]) for line in lines] == [("out/a.png:", "sent to Ada"), ("out/b.jpg:", "sent to Ada")], done
    one = alone("image", "extract", "--key-file", "my.key", "--text", "sent to another", "out/a.png")
    assert one.returncode == 0 and one.stdout.strip() == lines[0][1], one
    assert alone("image", "extract", "--key-file", "my.key", "in").returncode == 1
    bad = alone("image", "extract", "--key-file", "my.key", "in/readme.txt", "out/a.png")
    assert bad.returncode == 2 and "imgwardctl: in/readme.txt: " in bad.stderr and bad.stdout.startswith("out/a.png: "), bad
    (tmp_path / "one").mkdir()
    (tmp_path / "out" / "a.png").rename(tmp_path / "one" / "a.png")
    assert alone("image", "extract", "--key-file", "my.key", "one").stdout.startswith("one/a.png: ")


def test_pictures_are_protected_into_a_folder_and_failures_are_named(alone, tmp_path):
    weights = os.path.join(ROOT, "data", "protect.weights")
    done = alone("image", "protect", "--weights", weights, "in/readme.txt", "in/a.png", "in/b.jpg", "out")
    assert done.returncode == 2 and "in/readme.txt: " in done.stderr and "1 of 3 pictures failed" in done.stderr, done
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["out/a.png", "out/b.jpg"]
    assert Image.open(tmp_path / "out" / "b.jpg").size == (420, 320)
    before = (tmp_path / "in" / "a.png").read_bytes()
    same = alone("image", "protect", "--weights", weights, "in", "in")
    assert same.returncode == 2 and "would replace the picture" in same.stderr and (tmp_path / "in" / "a.png").read_bytes() == before
    (tmp_path / "other").mkdir()
    for name in ("a.png", "A.PNG"):
        (tmp_path / "other" / name).write_bytes(before)
        two = alone("image", "protect", "--weights", weights, "in/a.png", f"other/{name}", "out")
        assert two.returncode == 2 and " have one name" in two.stderr and "in/a.png" in two.stderr and f"other/{name}" in two.stderr, two
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.png").symlink_to("../in/b.jpg")
    link = alone("image", "protect", "--weights", weights, "in/a.png", "links")
    assert link.returncode == 2 and "links/a.png: is a symbolic link" in link.stderr, link
    none = alone("image", "protect", "--weights", weights, "in/a.png", "in/b.jpg", "nowhere")
    assert none.returncode == 2 and "nowhere: is not a folder" in none.stderr, none
    key = alone("image", "embed", "--text", "x", "in/a.png", "x.png")
    assert key.returncode == 2 and "imgwardctl image key FILE" in key.stderr, key


def test_a_picture_is_protected_at_standard_where_no_strength_is_given(stack, tmp_path):
    before, after, named = (tmp_path / name for name in ("in.png", "out.png", "named.png"))
    before.write_bytes(pictures.png(200, 150))
    done = ctl(stack, "image", "protect", str(before), str(after))
    assert done.returncode == 0 and ": standard, PSNR " in done.stdout, done
    assert ctl(stack, "image", "protect", "--strength", "standard", str(before), str(named)).returncode == 0
    assert after.read_bytes() == named.read_bytes() != before.read_bytes()
    assert pictures.psnr(before.read_bytes(), after.read_bytes()) > 30


def test_the_visibility_and_the_tint_of_a_protected_picture_are_reported(stack, tmp_path):
    before, after = tmp_path / "in.png", tmp_path / "out.png"
    before.write_bytes(pictures.png(200, 150))
    words = ("image", "protect", str(before), str(after))
    done = ctl(stack, *words, "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts["file"] == str(after) and facts["strength"] == "standard", done
    assert facts["visibilityReached"] > 0
    assert .9 * facts["visibilityBudget"] < facts["visibilityReached"] <= facts["visibilityBudget"]
    assert facts["share"] >= 90 and facts["word"] == "strong"
    assert facts["psnrDb"] == pytest.approx(pictures.psnr(before.read_bytes(), after.read_bytes()), abs=.01)
    old, new = (numpy.asarray(pictures.decode(path.read_bytes()).convert("RGB"), dtype=float) for path in (before, after))
    assert facts["tint"] == pytest.approx(list((new - old).mean(axis=(0, 1))), abs=1e-6)
    assert facts["note"] is None and facts["isLimited"] is False and done.stderr == ""
    done = ctl(stack, *words, "--verbose")
    assert done.stdout.startswith(f"{after}: standard, PSNR ")
    assert f"visibility: budget {facts['visibilityBudget']:.3f}, reached {facts['visibilityReached']:.3f}\n" in done.stderr
    assert "tint in levels of 255: red " in done.stderr, done


def test_the_tint_of_a_palette_of_greys_is_that_of_the_picture(stack, tmp_path):
    before, after = tmp_path / "in.png", tmp_path / "out.png"
    samples = numpy.full((150, 200, 3), 255, dtype=numpy.uint8)
    samples[50:100, 50:150] = 0
    Image.fromarray(samples).save(before)
    done = ctl(stack, "image", "protect", str(before), str(after), "--json")
    with Image.open(after) as result:
        assert result.mode == "P", result
        change = numpy.asarray(result.convert("RGB"), dtype=float) - samples
    assert json.loads(done.stdout)["tint"] == pytest.approx(list(change.mean(axis=(0, 1))), abs=1e-6)


def test_a_flat_picture_reports_that_it_hides_less_than_the_strength(stack, tmp_path):
    before, after = tmp_path / "in.png", tmp_path / "out.png"
    flat = io.BytesIO()
    Image.new("I;16", (200, 150), 0).save(flat, "PNG")
    before.write_bytes(flat.getvalue())
    done = ctl(stack, "image", "protect", str(before), str(after), "--strength", "high", "--json", "--verbose")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts["isLimited"] and len(facts["tint"]) == 1, done
    assert f"imgwardctl: note: {facts['note']}\n" in done.stderr and "weaker than the strength" in done.stderr
