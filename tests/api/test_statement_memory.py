"""The database's memory after orders of many shapes: the statement of a creation grows with the files and texts."""
import concurrent.futures
import json
import random

from marks import embed

SHAPES = 300


def database_mib(stack):
    with open(f"/proc/{stack.pid('mariadbd')}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) // 1024


def create_all(client, shapes):
    def create(shape):
        files, texts, is_mixed = shape
        marks = [f"text {number}" for number in range(texts)]
        return embed(client, [(f"{number}.jpg", None, marks[:1] if is_mixed and number == 0 else marks)
                              for number in range(files)]).status
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(create, shapes)) == {201}


def test_orders_of_many_shapes_do_not_fill_the_databases_memory(client, stack):
    """Compares with as many orders of one shape, because rows take memory, too."""
    shapes = [(files, texts, is_mixed) for files in range(20, 101) for texts in range(2, 11) for is_mixed in (False, True)]
    random.Random(1).shuffle(shapes)
    create_all(client, [(60, 6, False)] * 100)
    start = database_mib(stack)
    create_all(client, [(60, 6, False)] * SHAPES)
    same = database_mib(stack)
    create_all(client, shapes[:SHAPES])
    grown = database_mib(stack)
    print(json.dumps({"start_mib": start, "one_shape_mib": same - start, "many_shapes_mib": grown - same}))
    assert (grown - same) - (same - start) < 120, (start, same, grown)
