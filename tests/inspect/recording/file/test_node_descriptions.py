import json
import sqlite3

import numpy
import pytest

from gradscope.inspect.recording.file.node_descriptions import NodeDescriptions
from gradscope.inspect.recording.file.node_pages import NODE
from gradscope.inspect.recording.file.schema import TABLES


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(TABLES)
    yield made
    made.close()


def describe(descriptions, numbers):
    rows = [[n, f"Node{n}", n, "", n, 0, [], [], []] for n in numbers]
    descriptions.add(rows, json.dumps(rows))


def page(connection, number, rows):
    nodes = numpy.zeros(len(rows), NODE)
    nodes["node"] = rows
    connection.execute("INSERT INTO pages (id, nodes) VALUES (?, ?)", (number, nodes.tobytes()))


def there(connection):
    return {
        table: [number for (number,) in connection.execute(f"SELECT id FROM {table} ORDER BY id")]
        for table in ("nodes", "modules", "locations")
    }


def filled(connection):
    descriptions = NodeDescriptions(lambda: connection)
    for n in range(1, 7):
        connection.execute("INSERT INTO modules VALUES (?, ?)", (n, f"layers.{n}"))
        connection.execute("INSERT INTO locations VALUES (?, 'a.py', ?, 'f', '')", (n, n))
    describe(descriptions, range(1, 7))
    page(connection, 1, [1, 2, 2])
    page(connection, 2, [5])
    return descriptions


def test_what_no_page_refers_to_goes_with_its_module_and_line(connection):
    descriptions = filled(connection)
    assert descriptions.drop([6]) == 2
    assert there(connection) == {table: [1, 2, 5, 6] for table in ("nodes", "modules", "locations")}
    assert descriptions.drop([6]) == 0
    assert descriptions.drop() == 1


def test_what_has_gone_comes_back_as_it_was_when_a_page_needs_it(connection):
    descriptions = filled(connection)
    before = connection.execute("SELECT * FROM nodes").fetchall()
    descriptions.drop()
    descriptions.bring_back(numpy.array([3, 4, 4, 6, 1]))
    assert connection.execute("SELECT * FROM nodes ORDER BY id").fetchall() == before
    assert there(connection)["locations"] == [1, 2, 3, 4, 5, 6]
    descriptions.bring_back(numpy.array([3]))
    assert there(connection)["nodes"] == [1, 2, 3, 4, 5, 6]


def test_a_new_node_brings_its_line_and_module_back(connection):
    descriptions = filled(connection)
    descriptions.drop()
    rows = [[7, "Node7", 3, "", 4, 0, [], [], []]]
    descriptions.add(rows, json.dumps(rows))
    assert there(connection) == {"nodes": [1, 2, 5, 7], "modules": [1, 2, 3, 5], "locations": [1, 2, 4, 5]}
