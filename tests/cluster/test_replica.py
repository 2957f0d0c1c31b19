"""A primary and its asynchronous replica: a promotion under load, and an old primary that is writable by mistake."""
import time

import pytest

import rounds
import site_cluster as site_module
from load import Load


@pytest.fixture(scope="module")
def site():
    yield from site_module.opened(site_module.ReplicaSite)


def test_a_promotion_moves_all_programs_and_an_old_primary_is_not_used_again(site):
    # Each program checks its server once a second, so until then it may read from the old primary.
    load = Load(site, late_s=2)
    try:
        load.progress()
        site.promote()
        site_module.until(lambda: site.changes("away") >= 4, "pools and workers use the new primary")
        load.progress()
        # No program may write to the old primary, although it accepts writes again and is the first in the list.
        site.node_sql(1, "SET GLOBAL read_only = 0")
        before = site.node_sql(1, "SELECT @@gtid_binlog_pos")
        doctor = site.stack.ctl("doctor", "--directory", f"{site_module.ROOT}/sql", check=False)
        assert "2 servers without Galera are writable" in doctor, doctor
        end = time.monotonic() + 2 * site_module.BACK_S
        while time.monotonic() < end:
            load.progress()
        assert site.node_sql(1, "SELECT @@gtid_binlog_pos") == before
        assert site.changes("back") == 0
    finally:
        whole = load.close()
    site.sockets.reverse()
    assert whole.violations + rounds.verify(site, whole, 0) == []
