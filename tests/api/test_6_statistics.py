"""Contract section 6: GET /stats/recent."""
import datetime

import pytest

from client import ORDERS

RECENT = f"{ORDERS}/stats/recent"


def days_until(last):
    return [(last - datetime.timedelta(days=back)).isoformat() for back in range(6, -1, -1)]


def scale_is_right(data):
    bottom, top = data["domain"]
    ticks = data["ticks"]
    largest = max(day["usageCount"] for day in data["dailyStats"])
    assert bottom == 0 and top >= largest and top > 0
    assert ticks[0] == 0 and ticks[-1] == top and 5 <= len(ticks) <= 7
    assert len({after - before for before, after in zip(ticks, ticks[1:])}) == 1
    assert all(isinstance(tick, int) for tick in ticks)


def test_a_new_account_has_seven_days_of_nothing_and_a_scale(client):
    before = datetime.datetime.utcnow().date()
    answer = client.get(RECENT)
    assert answer.status == 200, answer
    dates = [day["usageDate"] for day in answer.data["dailyStats"]]
    assert dates in (days_until(before), days_until(datetime.datetime.utcnow().date()))  # midnight may pass during the test
    assert [day["usageCount"] for day in answer.data["dailyStats"]] == [0] * 7
    scale_is_right(answer.data)


def test_results_count_on_their_day(client, jpeg):
    before, day = usage(client, days_until(datetime.datetime.utcnow().date())[-1:]), datetime.datetime.utcnow().date()
    client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])
    days = {when.isoformat() for when in (day, datetime.datetime.utcnow().date())}  # midnight may pass during the test
    assert usage(client, days) == before + 2
    scale_is_right(client.get(RECENT).data)


def usage(client, days):
    return sum(day["usageCount"] for day in client.get(RECENT).data["dailyStats"] if day["usageDate"] in days)


def test_any_reference_date_shows_its_seven_days(client, stack):
    counts = {"2026-02-23": 1, "2026-02-27": 1234, "2026-03-01": 7, "2026-03-02": 99, "2026-02-22": 5}
    for day, count in counts.items():
        stack.sql(f"INSERT INTO usage_days (account_id, day, result_count) VALUES ({client.account}, '{day}', {count})")
    data = client.get(RECENT + "?date=2026-03-01").data
    assert [day["usageDate"] for day in data["dailyStats"]] == days_until(datetime.date(2026, 3, 1))
    assert [day["usageCount"] for day in data["dailyStats"]] == [1, 0, 0, 0, 1234, 0, 7]
    assert data["domain"] == [0, 2000] and data["ticks"] == [0, 500, 1000, 1500, 2000]
    scale_is_right(data)


def test_statistics_belong_to_their_account(client, stranger):
    stranger_before = stranger.get(RECENT + "?date=2026-03-01").data["dailyStats"]
    assert [day["usageCount"] for day in stranger_before] == [0] * 7


@pytest.mark.parametrize("date", ["", "today", "2026-13-01", "2026-02-30", "2026-3-1", "2026-03-01T00:00:00Z", "20260301"])
def test_an_invalid_date_is_named(client, date):
    answer = client.get(RECENT + "?date=" + date)
    assert answer.status == 400 and answer.fields() == ["date"], answer
