"""Contract section 6, keyword: a search finds the same as a comparison of all names and watermark texts, before and
after the worker has indexed them."""
import contextlib
import random
import subprocess
import time
import unicodedata

import pytest

import pictures
from client import ORDERS
from marks import embed, embedded, results

# 2024-01-01 UTC, the epoch of order ids; see src/model/order.h.
EPOCH_MS = 1704067200000
STATUSES = ["complete", "failed", "expired", "pending"]
TYPES = ["antiAi", "watermarkEmbed", "watermarkExtract"]
PARTS = ["IMG_", "DSC", "img", "image", "im", "holiday", "Straße", "STRASSE", "é", "e\u0301té", "사진", "사", "東京タワー", "हिन्दी", "١٢٣", "😀", "😀😀", "½",
         "2034", "203", "1", "12345678901234567890", "_", "-", ".", "..", " ", "  ", "%", "'", '"', "\\", "(2)", "x" * 60, ".jpg", ".JPEG", "ﬁn", "İ", "ŉ", "\u200d",
         "ⅷ", "a1b2c3", "İstanbul", "ΣΑΣ", "σας", "ǅ", "\u3000", "—", "a" * 3 + "1" * 3]
KEYWORDS = ["i", "im", "img", "IMG", "img_2034", "2034", "IMG_2034.jpg", "203", "20", "2", "1", "strasse", "STRASSE", "straß", "é", "e", "e\u0301", "ét", "사", "사진", "東",
            "京", "हि", "हिन्दी", "١", "😀", "😀😀", "½", "_", ".", "..", "%", "'", "\\", "( )", " ", "holiday img", "holiday img 1 2 3", "nothing", "xxx", "x" * 60, "x" * 61,
            "12345678901234567890", "123456789012345678901", "fin", "i̇", "İ", "ŉ", "ⅷ", "a1b2c3", "a 1 b", "ΣΑΣ", "σας", "ς", "ǆ", "jp", "jpg jpeg", "—", "a1", "aaa111", "&", "hol_2034"]


# ---------------------------------------------------------------- the comparison
def kind_of(character, before):
    group = unicodedata.category(character)
    if group[0] in "LN":
        return group[0]
    if group[0] == "M":
        return before or "S"
    return "S" if group[0] in "PS" else ""


def runs(text):
    """Returns (text, whether letters or digits) for each run."""
    found, before = [], ""
    for character in unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()):
        kind = kind_of(character, before)
        if kind and kind == before:
            found[-1][0] += character
        elif kind:
            found.append([character, kind != "S"])
        before = kind
    return [tuple(run) for run in found]


def matches(keyword, names):
    wanted = runs(keyword)
    wanted = [run for run in wanted if run[1]] or wanted
    terms = [run[0] for name in names for run in runs(name)]
    return bool(wanted) and all(any(term.startswith(run[0]) for term in terms) for run in wanted)


# ---------------------------------------------------------------- orders
def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class KnownOrders:
    """An account with count orders of random names, at least an hour old, newest first."""

    def __init__(self, stack, count, seed, age_ms=3600000, oldest=None):
        self.stack, self.client, chance = stack, stack.account_new(), random.Random(seed)
        newest = ((int(time.time() * 1000) - age_ms - EPOCH_MS) << 22) + int(self.client.account)
        self.orders = []
        for number in range(count):
            names = [self.name(chance) for _ in range(chance.randint(2, 4))]
            kind = chance.choice(TYPES)
            texts = [] if kind == "antiAi" else [self.name(chance) for _ in range(chance.randint(0, 3 if kind == "watermarkEmbed" else 1))]
            self.orders.append({"id": newest - (number * 7 << 22), "names": names, "texts": texts, "status": chance.choice(STATUSES),
                                "type": kind, "channel": chance.choice(["api", "api", "web"])})
        self.orders[-1].update(oldest or {})
        # The oldest come first, because an order that is committed after younger orders is late.
        for begin in reversed(range(0, count, 100)):
            self.insert(self.orders[begin:begin + 100])
        # The counters of these orders.
        stack.sql(f"UPDATE account_usage SET orders_pending = 1000, files_pending = 3000, uploads_pending = 3000 "
                  f"WHERE account_id = {self.client.account}")

    @staticmethod
    def name(chance):
        return "".join(chance.choice(PARTS) for _ in range(chance.randint(1, 4))).strip()[:60] or "?"

    def marks(self, order):
        """Returns the texts of the last file, as an embedding order has them; the first file has none."""
        if order["type"] != "watermarkEmbed":
            return ""
        account, statements = self.client.account, ""
        for copy, text in enumerate(order["texts"], 1):
            digest = f"UNHEX(SHA2({quoted(text)}, 256))"
            statements += f"""INSERT IGNORE INTO watermark_texts (account_id, text, text_digest, created_at)
                VALUES ({account}, {quoted(text)}, {digest}, NOW(3));
                INSERT INTO order_watermarks (order_id, file_position, copy, text_id, account_id, number)
                SELECT {order["id"]}, {len(order["names"]) - 1}, {copy}, id, {account}, {random.getrandbits(64)} FROM watermark_texts
                WHERE account_id = {account} AND text_digest = {digest};"""
        return statements

    def insert(self, orders, before_commit=""):
        """Inserts orders of random status and type. The worker must not expire them when a later test moves the clock."""
        account = self.client.account
        rows = ",".join(f"({order['id']}, {account}, '{order['type']}', '{order['channel']}', '{order['status']}', {quoted(order['names'][0])}, "
                        f"'{order['id']}', REPEAT('x', 32), {len(order['names']) - 1}, "
                        f"{quoted(order['texts'][0]) if order['texts'] and order['type'] == 'watermarkExtract' else 'NULL'}, NOW(3), NOW(3), NOW(3) + INTERVAL 400 DAY, NOW(3))" for order in orders)
        files = ",".join(f"({order['id']}, {place}, {quoted(name)}, 'complete', NOW(3))"
                         for order in orders for place, name in enumerate(order["names"][1:], 1))
        self.stack.sql(f"""SET NAMES utf8mb4; START TRANSACTION;
            INSERT INTO orders (id, account_id, type, channel, status, name, idempotency_key, body_digest, file_count, watermark_text,
                                created_at, updated_at, expires_at, ended_at) VALUES {rows};
            INSERT INTO files (order_id, position, name, status, updated_at) VALUES {files};
            {"".join(map(self.marks, orders))} {before_commit} COMMIT""")

    def expected(self, keyword=None, **filters):
        return [str(order["id"]) for order in self.orders if (keyword is None or matches(keyword, order["names"] + order["texts"]) or keyword == str(order["id"]))
                and all(order[name] == value for name, value in filters.items())]

    def found(self, page_size=100, **query):
        """Returns the ids of all pages; each page must have the same total."""
        ids, page, total = [], 1, None
        while True:
            answer = self.client.list(limit=page_size, page=page, **query)
            assert answer.status == 200, answer
            assert total in (None, answer.page["totalItems"])
            total = answer.page["totalItems"]
            ids += [order["orderId"] for order in answer.items]
            if page * page_size >= total:
                assert len(ids) == total
                return ids
            page += 1

    def check(self, page_size=100, **query):
        assert self.found(page_size, **query) == self.expected(**query), query

    def indexed(self):
        rows = self.stack.sql(f"SELECT COALESCE(SUM(order_count), 0) FROM order_segments WHERE account_id = {self.client.account}")
        return int(rows[0][0])

    def wait_indexed(self, least, seconds=120):
        end = time.monotonic() + seconds
        while self.indexed() < least:
            assert time.monotonic() < end, "the worker does not index the orders"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def small(stack):
    """An account with too few orders for the index, so lists read the names."""
    return KnownOrders(stack, 100, 1)


@pytest.fixture(scope="module")
def large(stack):
    """An account of which the worker indexes at least half of the orders, because an open segment doubles."""
    known_orders = KnownOrders(stack, 700, 2)
    known_orders.wait_indexed(350)
    return known_orders


@pytest.fixture(params=["small", "large"])
def known_orders(request):
    return request.getfixturevalue(request.param)


# ---------------------------------------------------------------- tests
def test_keywords_find_what_a_comparison_finds(known_orders):
    hits = {keyword: len(known_orders.expected(keyword)) for keyword in KEYWORDS}
    assert sum(count > 0 for count in hits.values()) > len(KEYWORDS) / 3, hits
    for keyword in KEYWORDS:
        if keyword.strip():
            known_orders.check(keyword=keyword)


def test_random_keywords_find_what_a_comparison_finds(known_orders):
    chance = random.Random(3)
    for _ in range(60):
        order = chance.choice(known_orders.orders)
        name = chance.choice(order["names"] + order["texts"])
        begin = chance.randrange(len(name))
        keyword = name[begin:begin + chance.randint(1, 12)]
        if keyword.strip():
            known_orders.check(keyword=keyword)


def test_filters_and_keywords_work_together(known_orders):
    for status in STATUSES:
        known_orders.check(status=status)
        known_orders.check(status=status, keyword="i")
        for kind in TYPES:
            known_orders.check(status=status, type=kind)
            known_orders.check(status=status, type=kind, channel="web", page_size=7)
    for kind in TYPES:
        known_orders.check(type=kind, page_size=30)
        known_orders.check(type=kind, channel="api", keyword="20")
    known_orders.check(channel="web", page_size=13)
    known_orders.check()


def test_every_page_size_has_the_same_orders(known_orders):
    for size in (1, 9, 100):
        first = known_orders.client.list(limit=size, keyword="i").items
        assert [order["orderId"] for order in first] == known_orders.expected("i")[:size]
    known_orders.check(keyword="i", page_size=11)


def test_the_whole_list_has_the_same_orders(known_orders):
    for keyword in ("i", "holiday", "nothing", "😀"):
        answer = known_orders.client.list(limit=-1, keyword=keyword)
        assert [order["orderId"] for order in answer.items] == known_orders.expected(keyword)
        assert answer.page["totalItems"] == len(known_orders.expected(keyword))
    assert known_orders.client.list(limit=-1, page=2, keyword="i").items == []
    answer = known_orders.client.list(limit=-1, keyword="i", status="failed")
    assert [order["orderId"] for order in answer.items] == known_orders.expected("i", status="failed")


def test_the_id_of_an_order_is_a_keyword(known_orders):
    for order in (known_orders.orders[0], known_orders.orders[50], known_orders.orders[-1]):
        known_orders.check(keyword=str(order["id"]))
        known_orders.check(keyword=str(order["id"]), status="failed")
        assert str(order["id"]) not in known_orders.found(keyword=str(order["id"])[:-1])


def test_another_accounts_orders_are_not_found(small, large):
    assert small.found(keyword=str(large.orders[600]["id"])) == []


def test_new_orders_are_found_at_once(known_orders):
    name = f"brandnew{int(known_orders.client.account)}"
    order = known_orders.client.create([f"{name}.png"], orderName="kettle 77").data["orderId"]
    try:
        for keyword in (name, name[:6], "kettle", "77 ket", "png kettle", order):
            assert order in known_orders.found(keyword=keyword), keyword
        assert known_orders.found(status="pending")[0] == order and known_orders.found()[0] == order
        assert known_orders.found(keyword="ttle") == []
    finally:
        known_orders.stack.sql(f"DELETE FROM files WHERE order_id = {order}; DELETE FROM orders WHERE id = {order}")


def test_texts_of_new_orders_are_found_at_once(known_orders):
    text = f"Sent to Żaneta{int(known_orders.client.account)}"
    copies = ["for the archive", text]
    order = embed(known_orders.client, [("a.png", None, copies), ("b.png", None, copies)], orderName="kettle").data["orderId"]
    try:
        for keyword in ("żaneta", "sent kettle", "ARCHIVE sent b"):
            assert order in known_orders.found(keyword=keyword), keyword
        assert known_orders.found(keyword=text, type="watermarkEmbed") == [order]
        assert known_orders.found(keyword="aneta") == []
    finally:
        known_orders.stack.sql(f"DELETE FROM files WHERE order_id = {order}; DELETE FROM orders WHERE id = {order}")
    assert known_orders.found(keyword=text) == []


def test_too_many_words_are_named(client):
    answer = client.list(keyword=" ".join(f"{chr(97 + number % 26)}{number}" for number in range(40)))
    assert answer.status == 400 and answer.fields() == ["keyword"] and "32" in answer.json["details"][0]["message"], answer


@contextlib.contextmanager
def due(stack, account):
    """Makes the worker build the account's segments again."""
    segments = stack.sql(f"SELECT first_id, last_id FROM order_segments WHERE account_id = {account}")
    yield
    stack.sql(f"UPDATE order_segments SET due_at = '2024-01-01' WHERE account_id = {account}")
    end = time.monotonic() + 120
    while stack.sql(f"SELECT COUNT(*) FROM order_segments WHERE account_id = {account} AND due_at < NOW()") != [["0"]]:
        assert time.monotonic() < end, segments
        time.sleep(0.1)


def test_a_status_that_changes_is_found_at_once(stack):
    known_orders = KnownOrders(stack, 200, 4)
    known_orders.wait_indexed(100)
    pending = known_orders.expected(status="pending")
    order = next(order for order in reversed(known_orders.orders) if order["status"] == "pending")
    assert known_orders.found(status="pending", channel=order["channel"]) == known_orders.expected(status="pending", channel=order["channel"])
    assert known_orders.client.request("DELETE", f"{ORDERS}/{order['id']}").status == 200
    order["status"] = "failed"
    for query in ({"status": "failed"}, {"status": "pending"}):
        known_orders.check(**query)
        known_orders.check(channel=order["channel"], **query)
        known_orders.check(keyword="i", **query)
    assert len(known_orders.expected(status="pending")) == len(pending) - 1
    # The next build of the segment corrects nothing.
    before = stack.sql(f"SELECT first_id, MD5(facts), MD5(ids) FROM order_segments WHERE account_id = {known_orders.client.account}")
    with due(stack, known_orders.client.account):
        pass
    assert stack.sql(f"SELECT first_id, MD5(facts), MD5(ids) FROM order_segments WHERE account_id = {known_orders.client.account}") == before


def test_changes_outside_of_the_index_are_corrected(stack):
    """Changed statuses, orders that were committed late, and deleted orders."""
    known_orders = KnownOrders(stack, 200, 5)
    known_orders.wait_indexed(100)
    changed, gone = known_orders.orders[150], known_orders.orders[160]
    late = {**known_orders.orders[170], "id": known_orders.orders[170]["id"] + 1, "names": ["latecomer", "late.jpg"]}
    with due(stack, known_orders.client.account):
        changed["status"] = "expired"
        stack.sql(f"UPDATE orders SET status = 'expired' WHERE id = {changed['id']}; DELETE FROM files WHERE order_id = {gone['id']};"
                  f"DELETE FROM orders WHERE id = {gone['id']}")
        known_orders.orders.remove(gone)
        known_orders.insert([late])
        known_orders.orders.insert(known_orders.orders.index(changed) + 19, late)
        known_orders.orders.sort(key=lambda order: -order["id"])
    known_orders.check(keyword="late")
    known_orders.check(keyword="i", status="expired")
    known_orders.check(status="expired", channel="api")
    known_orders.check()


def test_the_text_of_an_extraction_that_ends_late_is_indexed(stack):
    """The order was indexed before the extraction ended."""
    known_orders = KnownOrders(stack, 100, 10)
    client, text = known_orders.client, "Handed to Ingeborg"
    [(_, copy)] = results(client, embedded(client, [("a.jpg", pictures.jpeg(640, 480, seed=52, quality=93), [text])])["orderId"])
    created = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": "late", "file": {"fileName": "b.jpg"}}).data
    order, account = created["orderId"], client.account
    indexed = f"SELECT COUNT(*) FROM order_segments WHERE account_id = {account} AND last_id >= {order}"
    time.sleep(11)  # The index leaves out the last ten seconds.
    known_orders.insert([{**known, "id": known["id"] - (3600000 << 22)} for known in known_orders.orders])
    known_orders.wait_indexed(202)
    assert stack.sql(indexed) == [["1"]]
    assert client.upload(created["file"]["uploadUrl"], copy).status == 201
    assert client.wait(order)["watermarkText"] == text
    assert stack.sql(indexed + " AND due_at <= UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE") == [["1"]]
    with due(stack, account):
        pass
    assert known_orders.found(keyword="ingeborg", type="watermarkExtract") == [order]
    assert word_rows(stack, account, "ingeborg") == 1


@pytest.mark.parametrize("many", ["files", "texts"])
def test_orders_of_many_names_are_in_smaller_segments(stack, many):
    """A segment has at most 8,192 names, and is closed if the names of the next order do not fit."""
    known_orders = KnownOrders(stack, 130, 9, age_ms=7200000)
    account = known_orders.client.account
    for order in known_orders.orders:
        order.update(texts=[], type="watermarkEmbed" if many == "texts" else "antiAi")
    full = f"""UPDATE orders SET type = '{order["type"]}', watermark_text = NULL, file_count = {3 if many == "texts" else 63}
               WHERE account_id = {account}; DELETE FROM order_watermarks WHERE account_id = {account};"""
    if many == "texts":
        # 16 lines of 961 bytes and a name of at most 61 bytes count as 60 names of 255 bytes. Both files have the same texts.
        full += f"""
            INSERT IGNORE INTO watermark_texts (account_id, text, text_digest, created_at)
            SELECT {account}, CONCAT(REPEAT('q', 957), 100 + seq), UNHEX(SHA2(seq, 256)), NOW(3) FROM seq_1_to_16;
            INSERT INTO order_watermarks (order_id, file_position, copy, text_id, account_id, number)
            SELECT o.id, place.seq, t.id - o.first + 1, t.id, {account}, CONV(LEFT(SHA2(CONCAT(o.id, ' ', place.seq, ' ', t.id), 256), 16), 16, 10)
            FROM (SELECT id, (SELECT MIN(id) FROM watermark_texts WHERE account_id = {account}) AS first FROM orders WHERE account_id = {account}) o
            JOIN watermark_texts t ON t.account_id = {account} AND LENGTH(t.text) = 960 JOIN seq_1_to_2 place;"""
    known_orders.wait_indexed(130)
    stack.sql(full)
    younger = [{**order, "id": order["id"] + (3600000 << 22)} for order in known_orders.orders]
    known_orders.insert(younger, full)
    known_orders.orders = younger + known_orders.orders
    known_orders.wait_indexed(260)
    assert stack.sql(f"SELECT order_count, is_open FROM order_segments WHERE account_id = {account} ORDER BY first_id") == [["130", "0"], ["130", "1"]]
    known_orders.check(keyword="i")
    known_orders.check(status="failed", channel="api")


def word_rows(stack, account, word):
    """Returns the rows of the index that contain the bytes of a word."""
    return int(stack.sql(f"SELECT COUNT(*) FROM order_words WHERE account_id = {account} AND INSTR(postings, {quoted(word)}) > 0")[0][0])


def test_the_words_of_a_deleted_order_are_deleted(stack):
    known_orders = KnownOrders(stack, 200, 6, age_ms=100 * 86400000, oldest={
        "names": ["holiday", "qqsecretword.jpg"], "texts": ["zqsecrettext"], "status": "expired", "type": "watermarkEmbed"})
    order = known_orders.orders[199]
    known_orders.wait_indexed(100)
    known_orders.check(keyword="qqsecret")
    words = ("qqsecretword", "zqsecrettext")
    known_orders.check(keyword="zqsecret qqsecret")
    assert [word_rows(stack, known_orders.client.account, word) for word in words] == [1, 1]
    stack.sql(f"UPDATE orders SET ended_at = '2024-01-01' WHERE id = {order['id']}")
    end = time.monotonic() + 120
    while stack.sql(f"SELECT COUNT(*) FROM orders WHERE id = {order['id']}") != [["0"]]:
        assert time.monotonic() < end, "the row is not deleted"
        time.sleep(0.1)
    known_orders.orders.remove(order)
    known_orders.check()
    known_orders.check(keyword="qqsecret")
    with due(stack, known_orders.client.account):
        pass
    assert [word_rows(stack, known_orders.client.account, word) for word in words] == [0, 0]
    known_orders.check(keyword="i")


def test_the_index_goes_on_soon_after_it_waited_for_a_lock(stack):
    """The pause after a step is a multiple of the time of the step, up to a bound."""
    stack.sql("LOCK TABLES order_segments WRITE; DO SLEEP(4)")
    KnownOrders(stack, 200, 12).wait_indexed(100, seconds=60)


def test_an_account_is_deleted_with_its_words(stack):
    known_orders = KnownOrders(stack, 200, 7)
    known_orders.wait_indexed(100)
    account = known_orders.client.account
    stack.sql(f"UPDATE accounts SET status = 'suspended', delete_at = '2024-01-01' WHERE id = {account}")
    end = time.monotonic() + 240
    while stack.sql(f"SELECT COUNT(*) FROM accounts WHERE id = {account}") != [["0"]]:
        assert time.monotonic() < end, "the account is not deleted"
        time.sleep(0.1)
    for table in ("order_segments", "order_words"):
        assert stack.sql(f"SELECT COUNT(*) FROM {table} WHERE account_id = {account}") == [["0"]]


def due_soon(stack, account):
    """Returns for the segments whether they are built again within ten minutes."""
    return {int(value) for value, in stack.sql(f"SELECT due_at <= UTC_TIMESTAMP(3) + INTERVAL 10 MINUTE FROM order_segments WHERE account_id = {account}")}


@pytest.mark.parametrize("age_ms, is_soon", [(15000, 1), (3600000, 0)])
def test_a_young_segment_is_built_again_soon(stack, age_ms, is_soon):
    """Orders may be committed late, even if a change of another order has already built the segment again."""
    known_orders = KnownOrders(stack, 200, 11, age_ms=age_ms)
    known_orders.wait_indexed(100)
    assert due_soon(stack, known_orders.client.account) == {1}
    with due(stack, known_orders.client.account):
        pass
    assert due_soon(stack, known_orders.client.account) == {is_soon}


def test_segments_of_an_earlier_release_are_built_again(stack):
    """These segments lack the words of texts. The worker of an earlier release writes no version."""
    known_orders = KnownOrders(stack, 200, 12)
    known_orders.wait_indexed(100)
    account = known_orders.client.account
    # In one transaction, because the worker may build the segment again as soon as it has the version.
    stack.sql(f"START TRANSACTION; UPDATE order_segments SET version = DEFAULT, due_at = NOW(3) + INTERVAL 7 DAY WHERE account_id = "
              f"{account}; DELETE FROM order_words WHERE account_id = {account}; COMMIT")
    end = time.monotonic() + 120
    while stack.sql(f"SELECT COUNT(*) FROM order_segments WHERE account_id = {account} AND version = 0") != [["0"]]:
        assert time.monotonic() < end, "the segment is not built again"
        time.sleep(0.1)
    known_orders.check(keyword="i")


def test_a_locked_order_does_not_stop_the_worker(stack, jpeg):
    """The segment is built again when the order is no longer locked."""
    known_orders = KnownOrders(stack, 200, 8)
    known_orders.wait_indexed(100)
    order = known_orders.orders[190]
    lock = subprocess.Popen(["mariadb", "--no-defaults", "-n", "-N", "-S", stack.environment["IMGWARD_DB_SOCKET"], "imgward"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        lock.stdin.write(f"START TRANSACTION; UPDATE orders SET status = 'expired' WHERE id = {order['id']}; SELECT 'locked';\n".encode())
        lock.stdin.flush()
        assert lock.stdout.readline() == b"locked\n"
        stack.sql(f"UPDATE order_segments SET due_at = '2024-01-01' WHERE account_id = {known_orders.client.account}")
        assert known_orders.client.order_whole([("a.jpg", jpeg)])["status"] == "complete"
        assert stack.sql(f"SELECT COUNT(*) > 0 FROM order_segments WHERE account_id = {known_orders.client.account} AND due_at < NOW()") == [["1"]]
        assert known_orders.client.list(keyword="i").page["totalItems"] >= len(known_orders.expected("i"))
    finally:
        lock.stdin.write(b"COMMIT;\n")
        lock.stdin.close()
        lock.wait(60)
    end = time.monotonic() + 120
    order["status"] = "expired"
    while known_orders.client.list(status="expired", channel=order["channel"]).page["totalItems"] != len(known_orders.expected(status="expired", channel=order["channel"])):
        assert time.monotonic() < end, "the segment is not built again"
        time.sleep(0.2)
