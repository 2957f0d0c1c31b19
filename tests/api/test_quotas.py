"""Limits on the orders, the stored bytes and the other objects of an account; issue 50."""
import subprocess
import threading
import time

import pytest
from PIL import Image

import marks
import pictures
from client import ORDERS


def quota(account, limit, value):
    account.stack.ctl("account", "quota", account.account, limit, str(value))


def usage(account):
    limits = account.get(f"{ORDERS}/stats/usage").data["limits"]
    return {limit["name"]: limit["used"] for limit in limits}


def fresh(account):
    """Makes the account's next request read the limits, because the pool caches keys for api.key_cache_s."""
    account.key = account.stack.key_new(account.account)
    return account


def refused(answer, limit, used, allowed):
    assert answer.status == 429 and answer.code == "USAGE_LIMIT_EXCEEDED", answer
    assert limit in answer.json["message"] and f"{used} " in answer.json["message"] and f"{allowed} " in answer.json["message"]
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["UsageLimit-Name"] == limit and answer.headers["UsageLimit-Reset"] == answer.headers["Retry-After"]
    assert (answer.headers["UsageLimit-Used"], answer.headers["UsageLimit-Limit"]) == (str(used), str(allowed))


def reconciled(account, wanted, seconds=120):
    end = time.monotonic() + seconds
    account.stack.sql(f"UPDATE account_usage SET reconciled_at = '1970-01-01' WHERE account_id = {account.account}")
    while (now := usage(account)) != wanted and time.monotonic() < end:
        time.sleep(0.2)
    return now


@pytest.mark.parametrize("limit, allowed, used", [("ordersPending", 2, 2), ("filesPending", 5, 4), ("filesPerDay", 5, 4),
                                                  ("promisedBytes", 5 * 52428800 + 1, 4 * 52428800)])
def test_a_limit_refuses_the_next_order_and_a_replay_returns_its_order(stack, limit, allowed, used):
    account = stack.account_new()
    quota(account, limit, allowed)
    first = account.create(["a.jpg", "b.jpg"], key="one")
    assert first.status == 201 and account.create(["a.jpg", "b.jpg"]).status == 201
    refused(account.create(["a.jpg", "b.jpg"]), limit, used, allowed)
    replay = account.create(["a.jpg", "b.jpg"], key="one")
    assert replay.status == 200 and replay.data["orderId"] == first.data["orderId"]
    assert account.list().page["totalItems"] == 2


def test_a_created_order_names_the_nearest_limit_from_half_of_it_on(stack):
    account = stack.account_new("free")
    assert "UsageLimit-Name" not in account.create(["a.jpg", "b.jpg"], key="one").headers
    quota(account, "ordersPending", 2)
    quota(account, "filesPending", 3)
    answer = fresh(account).create(["a.jpg"])
    assert [answer.headers["UsageLimit-" + name] for name in ("Name", "Limit", "Used")] == ["filesPending", "3", "2"]
    assert "UsageLimit-Name" not in account.create(["a.jpg", "b.jpg"], key="one").headers
    for name in ("ordersPending", "filesPending"):
        quota(account, name, 0)
    assert "UsageLimit-Name" not in fresh(account).create().headers


def test_a_request_that_is_too_much_without_any_use_is_invalid(stack):
    account = stack.account_new()
    quota(account, "filesPending", 1)
    answer = account.create(["a.jpg", "b.jpg"])
    assert answer.status == 400 and answer.fields() == ["files"] and "filesPending" in answer.json["message"], answer


def locks_expire(account):
    """Deletes the locks of keys. For five seconds, the lock of a key would lead a creation to its replay."""
    for name in account.stack.redis("KEYS", f"*idempotency:{account.account}:*").split():
        account.stack.redis("DEL", name)


@pytest.mark.parametrize("limit", ["filesPending", "filesPerDay", "promisedBytes"])
def test_a_replay_returns_its_order_after_the_limit_was_lowered_below_it(stack, limit):
    account = stack.account_new()
    first = account.create(["a.jpg", "b.jpg"], key="one")
    quota(account, limit, 1)
    locks_expire(account)
    replay = fresh(account).create(["a.jpg", "b.jpg"], key="one")
    assert replay.status == 200 and replay.data["orderId"] == first.data["orderId"], replay
    assert account.create(["a.jpg"], key="one").code == "IDEMPOTENCY_KEY_REUSED"
    answer = account.create(["a.jpg", "b.jpg"])
    assert answer.status == 400 and limit in answer.json["message"], answer


def test_a_replay_with_texts_returns_its_order_after_the_limits_were_lowered(stack):
    account = stack.account_new()
    files = [("a.jpg", None, ["one", "two"]), ("b.jpg", None, ["one", "two"])]
    first = marks.embed(account, files, key="one")
    quota(account, "textsPerDay", 1)
    quota(account, "filesPerDay", 1)
    locks_expire(account)
    replay = marks.embed(fresh(account), files, key="one")
    assert first.status == 201 and replay.status == 200 and replay.data["orderId"] == first.data["orderId"], replay
    answer = marks.embed(account, [("a.jpg", None, ["three", "four"])])
    assert answer.status == 400 and "textsPerDay" in answer.json["message"], answer


def test_concurrent_creations_do_not_exceed_a_limit(stack):
    account = stack.account_new()
    quota(account, "ordersPending", 5)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(account.create())) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = [answer.status for answer in answers]
    assert statuses.count(201) == 5 and statuses.count(429) == 19, statuses
    assert stack.sql(f"SELECT COUNT(*) FROM orders WHERE account_id = {account.account}") == [["5"]]


# ---------------------------------------------------------------- the reserve: claims ahead of the next creations
def busy(stack):
    """An account with a reserve, and the keys of the account's orders. The worker reconciles the account only on demand."""
    account = stack.account_new()
    stack.sql(f"UPDATE account_usage SET reconciled_at = '2100-01-01' WHERE account_id = {account.account}")
    keys = []
    while not reserve(account) and len(keys) < 400:
        keys.append(f"key {len(keys)}")
        assert account.create(["a.jpg", "b.jpg"], key=keys[-1]).status == 201
    return account, keys


def reserve_key(account):
    return f"{account.stack.environment.get('IMGWARD_REDIS_PREFIX', 'imgward:')}reserve:{account.account}"


def reserve(account):
    """Returns [term, orders, files, uploads] of the reserve, or [] if it is empty."""
    numbers = [int(word) for word in account.stack.redis("GET", reserve_key(account)).split()]
    return numbers if numbers and numbers[1] > 0 else []


def claimed(account):
    return [int(number) for number in account.stack.sql(
        f"SELECT orders_pending, files_pending, uploads_pending, files_day FROM account_usage WHERE account_id = "
        f"{account.account}")[0]]


def balanced(account, orders):
    """Checks that the row counts these orders of two files and the reserve, nothing else."""
    _, *kept = reserve(account) or [0, 0, 0, 0]
    assert claimed(account) == [orders + kept[0], 2 * orders + kept[1], 2 * orders + kept[2], 2 * orders + kept[1]]


def test_a_busy_account_claims_ahead_and_its_use_is_exact(stack):
    account, keys = busy(stack)
    balanced(account, len(keys))
    assert claimed(account)[0] > len(keys)
    assert {name: usage(account)[name] for name in ("ordersPending", "filesPending", "promisedBytes", "filesPerDay")} == \
        {"ordersPending": len(keys), "filesPending": 2 * len(keys), "promisedBytes": 2 * len(keys) * 52428800,
         "filesPerDay": 2 * len(keys)}
    assert f'"name":"ordersPending","used":{len(keys)},' in \
        stack.ctl("account", "show", "--json", account.account).replace(" ", "")
    # A creation that the reserve does not cover deducts the reserve from its claim.
    assert account.create([f"{number}.jpg" for number in range(100)]).status == 201
    kept = reserve(account) or [0, 0, 0, 0]
    assert claimed(account)[1] - kept[2] == 2 * len(keys) + 100


def test_a_creation_that_fails_returns_what_it_took_from_the_reserve(stack):
    account, keys = busy(stack)
    for _ in range(5):
        assert account.create(["a.jpg", "b.jpg"], key=keys[0]).status == 200
        assert account.create(["c.jpg", "d.jpg"], key=keys[1]).status == 409
    balanced(account, len(keys))


def test_a_reserve_of_exactly_one_order_covers_it_in_a_later_term(stack):
    """The claim then adds nothing. An unchanged row does not mean that a limit is reached."""
    account = stack.account_new()
    stack.part("stop", "worker")  # it would reconcile the new account between the two changes
    try:
        assert account.create(["a.jpg", "b.jpg"]).status == 201
        for _ in range(3):
            stack.sql("UPDATE account_usage SET orders_pending = orders_pending + 1, files_pending = files_pending + 2, uploads_pending = "
                      f"uploads_pending + 2, files_day = files_day + 2 WHERE account_id = {account.account}")
            stack.redis("SET", reserve_key(account), f"{int(time.time()) // 10 - 1} 1 2 2")
            answer = account.create(["a.jpg", "b.jpg"])
            assert answer.status == 201, answer
        balanced(account, 4)
    finally:
        stack.part("start", "worker")


def test_a_covered_order_with_a_new_text_is_created_with_the_store_full(stack):
    """The reserve was claimed while there was space. A text needs another claim, but no bytes."""
    account = stack.account_new()
    quota(account, "storedBytes", 1000)
    assert account.create(["a.jpg", "b.jpg"]).status == 201
    stack.sql("UPDATE account_usage SET orders_pending = orders_pending + 2, files_pending = files_pending + 4, uploads_pending = "
              "uploads_pending + 4, files_day = files_day + 4, stored_bytes = 1000, reconciled_at = '2100-01-01' "
              f"WHERE account_id = {account.account}")
    while time.time() % 10 > 3:  # a reserve covers only orders of the same ten seconds
        time.sleep(0.1)
    stack.redis("SET", reserve_key(account), f"{int(time.time()) // 10} 2 4 4")
    answer = embed(account, ["a new text"])
    assert answer.status == 201, answer


def test_a_reserve_that_redis_lost_is_free_again_after_the_reconciliation(stack):
    account, keys = busy(stack)
    stack.redis("DEL", reserve_key(account))
    assert claimed(account)[0] > len(keys), claimed(account)
    stack.sql(f"UPDATE account_usage SET reconciled_at = '1970-01-01' WHERE account_id = {account.account}")
    end = time.monotonic() + 240
    while claimed(account)[:3] != [len(keys), 2 * len(keys), 2 * len(keys)]:
        assert time.monotonic() < end, claimed(account)
        time.sleep(0.2)


def test_a_reserve_of_an_earlier_term_is_removed_by_the_worker(stack):
    account, keys = busy(stack)
    term, *amounts = reserve(account)
    stack.redis("SET", reserve_key(account), " ".join(map(str, [term - 1, *amounts])))
    stack.sql(f"UPDATE account_usage SET reconciled_at = '1970-01-01' WHERE account_id = {account.account}")
    end = time.monotonic() + 240
    while claimed(account) != [len(keys)] + 3 * [2 * len(keys)]:
        assert time.monotonic() < end, claimed(account)
        time.sleep(0.2)
    assert reserve(account) == []


def test_a_reserve_of_yesterday_gives_no_files_of_today(stack):
    account, keys = busy(stack)
    files_day = claimed(account)[3]
    term, *amounts = reserve(account)
    stack.redis("SET", reserve_key(account), " ".join(map(str, [term - 8640, *amounts])))
    assert account.create(["a.jpg", "b.jpg"]).status == 201
    kept = reserve(account) or [0, 0, 0, 0]
    assert claimed(account)[3] == files_day + 2 + kept[2]
    assert claimed(account)[1] == 2 * (len(keys) + 1) + kept[2]


def test_concurrent_creations_of_a_busy_account_do_not_exceed_a_limit(stack):
    account, keys = busy(stack)
    limit = len(keys) + 80
    quota(account, "ordersPending", limit)
    fresh(account)
    statuses = []

    def create():
        while statuses.count(429) == 0:
            statuses.append(account.create(["a.jpg", "b.jpg"]).status)
    threads = [threading.Thread(target=create) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {201, 429}
    # A process may have returned its reserve after a refusal of another process.
    while account.create(["a.jpg", "b.jpg"]).status == 201:
        pass
    assert account.list().page["totalItems"] == limit


def test_the_use_follows_an_order_to_its_end(stack):
    account = stack.account_new()
    # The worker reconciles the account only on demand.
    stack.sql(f"UPDATE account_usage SET reconciled_at = '2100-01-01' WHERE account_id = {account.account}")
    nothing = {"ordersPending": 0, "filesPending": 0, "promisedBytes": 0, "storedBytes": 0, "filesPerDay": 0,
               "textsPerDay": 0, "webhooks": 0}
    assert usage(account) == nothing
    data = pictures.jpeg(200, 150)
    created = account.create(["a.jpg"]).data
    assert usage(account) == {**nothing, "ordersPending": 1, "filesPending": 1, "promisedBytes": 52428800, "filesPerDay": 1}
    assert account.upload(created["files"][0]["uploadUrl"], data).status == 201
    assert usage(account)["storedBytes"] == len(data)
    assert account.confirm(created["orderId"]).status == 200
    assert usage(account)["promisedBytes"] == 0
    assert account.wait(created["orderId"])["status"] == "complete"
    stack.settled(created["orderId"])
    size = len(account.download(created["orderId"]).body)
    after = {**nothing, "storedBytes": size, "filesPerDay": 1}
    assert usage(account) == {**after, "storedBytes": len(data) + size}
    assert reconciled(account, after) == after


def sizes_of(stack, order):
    rows = stack.sql(f"SELECT size_bytes FROM results WHERE order_id = {order} UNION ALL SELECT zip_size_bytes FROM orders "
                     f"WHERE id = {order} AND zip_store_key IS NOT NULL")
    return [int(size) for (size,) in rows]


def test_an_order_ends_with_counters_that_are_too_low(stack, jpeg):
    """If Redis is restored after a loss of power, it may give a reserve twice. The order's end must still be recorded."""
    account = stack.account_new()
    created = account.create(["a.jpg", "b.jpg"]).data
    stack.sql(f"UPDATE account_usage SET orders_pending = 0, files_pending = 0, uploads_pending = 0, stored_bytes = 0, "
              f"reconciled_at = '2100-01-01' WHERE account_id = {account.account}")
    for file in created["files"]:
        assert account.upload(file["uploadUrl"], jpeg).status == 201
    assert account.confirm(created["orderId"]).status == 200
    assert account.wait(created["orderId"])["status"] == "complete"
    stack.settled(created["orderId"])
    wanted = {**usage(account), "ordersPending": 0, "filesPending": 0, "promisedBytes": 0}
    wanted["storedBytes"] = sum(sizes_of(stack, created["orderId"]))
    assert reconciled(account, wanted) == wanted


def test_stored_bytes_refuse_an_order(stack):
    account = stack.account_new()
    stack.sql(f"UPDATE account_usage SET stored_bytes = 1000, reconciled_at = '2100-01-01' WHERE account_id = {account.account}")
    quota(account, "storedBytes", 1000)
    refused(account.create(), "storedBytes", 1000, 1000)


def test_the_counters_are_reconciled_with_the_rows(stack):
    """The programs of the previous release do not count, and an account may not have a row yet."""
    account = stack.account_new()
    assert account.create(["a.jpg", "b.jpg"]).status == 201
    right = usage(account)
    stack.sql(f"UPDATE account_usage SET orders_pending = 77, files_pending = -5, uploads_pending = 9, stored_bytes = 12345, "
              f"reconciled_at = '2100-01-01' WHERE account_id = {account.account}")
    assert usage(account) != right and reconciled(account, right) == right
    stack.sql(f"DELETE FROM account_usage WHERE account_id = {account.account}")
    assert account.create().status == 201
    assert usage(account)["ordersPending"] == 2


def test_webhooks_are_counted_in_the_transaction(stack):
    account = stack.account_new()
    quota(account, "webhooks", 3)
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(
        account.post(f"{ORDERS}/webhooks", {"url": f"https://receiver.example/{n}"}))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [201] * 3 + [429] * 9, statuses
    over = next(answer for answer in answers if answer.status == 429)
    assert over.code == "USAGE_LIMIT_EXCEEDED" and "webhooks" in over.json["message"]


def test_the_operator_overrides_and_sees_a_limit(stack):
    account = stack.account_new("free")
    shown = stack.ctl("account", "show", account.account)
    assert "ordersPending" in shown and "free" in shown
    assert stack.ctl("account", "quota", account.account, "ordersPending", "1") == \
        f"account {account.account}: ordersPending 1 (individual limit)\n"
    assert account.create().status == 201
    refused(account.create(), "ordersPending", 1, 1)
    quota(account, "ordersPending", 0)
    assert fresh(account).create().status == 201
    assert {"name": "ordersPending", "used": 2, "limit": None} in account.get(f"{ORDERS}/stats/usage").data["limits"]
    quota(account, "ordersPending", "plan")
    assert '{"name":"ordersPending","used":2,"limit":500,"isOverridden":false}' in \
        stack.ctl("account", "show", "--json", account.account).replace(" ", "")
    for words in (("nonsense", "1"), ("webhooks", "-1")):
        with pytest.raises(RuntimeError):
            stack.ctl("account", "quota", account.account, *words)


def test_a_limit_that_is_used_to_eighty_per_cent_is_logged_once(stack):
    account = stack.account_new()
    quota(account, "filesPending", 5)
    assert account.create(["1.jpg", "2.jpg", "3.jpg", "4.jpg"]).status == 201
    # The worker logs after it has set reconciled_at, and before it sets warned: a third time shows that the second is over.
    for wanted in ("warned <> 0", "reconciled_at > '2000-01-01'", "reconciled_at > '2000-01-01'"):
        stack.sql(f"UPDATE account_usage SET reconciled_at = '1970-01-01' WHERE account_id = {account.account}")
        end = time.monotonic() + 240
        while not stack.sql(f"SELECT 1 FROM account_usage WHERE account_id = {account.account} AND {wanted}"):
            assert time.monotonic() < end
            time.sleep(0.2)
    with open(stack.environment["IMGWARD_LOG"] + "/worker.log", encoding="utf-8") as file:
        lines = [line for line in file if '"usage_high"' in line and f'"account_id":{account.account}' in line.replace(" ", "")]
    assert len(lines) == 1 and "filesPending" in lines[0], lines


def doctor(stack):
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "doctor"],
                          capture_output=True, text=True, timeout=240)
    return done.stdout.splitlines()


def test_below_the_free_bytes_nothing_new_is_taken(stack, jpeg):
    account = stack.account_new()
    before = account.create(["a.jpg"], key="before")
    url = before.data["files"][0]["uploadUrl"]
    with stack.configured("store", "free_min_bytes", str(2 ** 50)):
        full = account.create(["b.jpg"])
        assert full.status == 503 and full.code == "SERVICE_UNAVAILABLE" and full.headers["Retry-After"] == "60"
        assert "no space left to record orders" in full.json["message"], full
        assert "free at" in next(line for line in doctor(stack) if line.startswith("database "))
        assert account.create(["a.jpg"], key="before").status == 200
        upload = account.upload(url, jpeg)
        assert upload.status == 503 and "no space left to store files" in upload.json["message"], upload
        assert stack.stored(before.data["orderId"]) == []
        assert account.list().page["totalItems"] == 1
    assert account.upload(url, jpeg).status == 201
    with open(stack.environment["IMGWARD_LOG"] + "/api.log", encoding="utf-8") as file:
        lines = file.readlines()
    assert any('"store_full"' in line for line in lines) and any('"database_full"' in line for line in lines)


def embed(account, texts, **more):
    return account.create([{"fileName": "a.jpg", "watermarks": [{"text": text} for text in texts]}], kind="wtr-embed", **more)


def test_new_texts_are_counted_and_a_refused_order_leaves_none(stack):
    account = stack.account_new()
    quota(account, "textsPerDay", 5)
    texts = [f"text {number}" for number in range(8)]
    assert embed(account, texts[:4]).status == 201
    assert embed(account, texts[:4]).status == 201
    assert usage(account)["textsPerDay"] == 4
    refused(embed(account, texts[2:6]), "textsPerDay", 4, 5)
    assert embed(account, texts[2:5]).status == 201
    assert stack.sql(f"SELECT COUNT(*) FROM watermark_texts WHERE account_id = {account.account}") == [["5"]]
    quota(account, "ordersPending", 3)
    assert embed(fresh(account), ["another"]).status == 429
    assert stack.sql(f"SELECT COUNT(*) FROM watermark_texts WHERE account_id = {account.account}") == [["5"]]


def test_concurrent_orders_with_the_same_texts_in_other_orders_do_not_conflict(stack):
    account = stack.account_new()
    texts = [f"shared {number}" for number in range(10)]
    answers = []
    before = int(stack.sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")[0][1])
    threads = [threading.Thread(target=lambda number=number: answers.append(
        embed(account, texts[number % 10:] + texts[:number % 10] if number % 2 else texts[::-1]))) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [201] * 24, answers
    assert int(stack.sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")[0][1]) == before
    assert stack.sql(f"SELECT COUNT(*) FROM watermark_texts WHERE account_id = {account.account}") == [["10"]]
    details = [account.detail(answer.data["orderId"]).data["watermarks"] for answer in answers]
    assert all(sorted(one) == sorted(texts) for one in details)


def test_a_smooth_picture_grows_to_the_floor_and_not_above_it(stack):
    """A PNG of equal rows becomes hundreds of times as large. Small pictures and those of few colours stay below the floor."""
    def ramps(count):
        picture = Image.new("RGB", (256 * count, 256 * count))
        up = Image.linear_gradient("L").rotate(90)
        for place in range(count * count):
            picture.paste(Image.merge("RGB", (up, up.rotate(180), up)), (256 * (place % count), 256 * (place // count)))
        return pictures.encode(picture, "PNG")
    account = stack.account_new()
    art = pictures.scene(32, 32).resize((512, 512), 0)
    flat = Image.new("RGB", (1300, 1300), (200, 30, 30))
    with stack.configured("image", "result_floor_bytes", str(1 << 20)):
        order = account.order_whole([("large.png", ramps(5)), ("small.png", ramps(1)),
                                     ("flat.png", pictures.encode(flat, "PNG")), ("art.png", pictures.encode(art, "PNG"))])
    errors = {file["fileName"]: file["error"] for file in order["files"]}
    assert order["status"] == "complete", order["errors"]
    assert [name for name, error in errors.items() if error is not None] == ["large.png"], errors
    assert errors["large.png"]["code"] == "IMAGE_TOO_LARGE" and "more than 100 times" in errors["large.png"]["message"]
    names = [row[0] for row in stack.sql(f"SELECT f.name FROM results r JOIN files f ON f.id = r.file_id "
                                         f"WHERE r.order_id = {order['orderId']}")]
    assert sorted(names) == ["art.png", "flat.png", "small.png"]


def test_a_result_out_of_proportion_to_its_source_is_refused(stack, png):
    account = stack.account_new()
    with stack.configured("image", "result_floor_bytes", "1000"), stack.configured("image", "result_times_max", "1"):
        order = account.order_whole([("a.png", pictures.encode(pictures.scene(8, 8).resize((300, 300), 0), "PNG"))])
    assert order["status"] == "failed" and "IMAGE_TOO_LARGE: The result has " in order["errors"], order["errors"]
    assert account.order_whole([("a.png", png)])["status"] == "complete"
