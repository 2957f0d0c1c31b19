"""A few rounds of rounds.py, which can run for hours. The programs are built with fault points."""
import os
import re
import subprocess
import sys

import points

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rounds.py")


def test_every_fault_point_of_the_table_is_in_the_code_and_has_a_place():
    found = set()
    for folder, _, names in os.walk(os.path.join(points.ROOT, "src")):
        for name in names:
            if name.endswith((".c", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.update(re.findall(r"(?:fault_point|fault_fails|is_broken|answer_lost)\([^)]*?\bFAULT_([A-Z_]+),", file.read()))
    with open(points.HEADER, encoding="utf-8") as file:
        named = [name for name in re.findall(r"\bFAULT\(([A-Z_]+), \"", file.read()) if name != "NAME"]
    assert len(named) == len(set(named)) == len(points.fault_points())
    assert found == set(named)
    places = points.table(points.PLACES + points.OBJECT_PLACES + points.CONSOLE_PLACES)
    assert {place.point for place in places} == set(points.fault_points())
    assert len({place.name for place in places}) == len(places) > 50


def rounds(*options):
    done = subprocess.run([sys.executable, PROGRAM, *options], capture_output=True, text=True, timeout=2400)
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_rounds_break_no_promise_and_pass_every_fault_point():
    """One round for points that are only reached after a death, then as many rounds as fit into half a minute."""
    rounds("--seconds", "25", "--seed", "7", "--every-point")


def test_a_transaction_that_the_server_rolls_back_without_an_error_runs_again():
    """Galera rolls back some SELECTs without an error. Round 9 fails if the programs do not detect that."""
    rounds("--rounds", "12", "--seed", "5", "--only", "db.rolled_back")
