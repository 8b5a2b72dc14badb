"""Helpers for the tests of values by debug data. record() returns all values of a program by the names in its debug
data."""
import os
import re

from sojourn_testing import check, check_accounts


def shown(value):
    return f"{value:.17g}" if isinstance(value, float) else str(value)


def plain_name(name):
    """Returns the plain name of a generated function, also for clones and methods."""
    generated = re.search(r"generated_\d+", name)
    return generated.group() if generated else name.split(".")[0]


def record(sojourn, program, patterns, *options, environment=None):
    """Records a program. Returns the completed process, the values, and the database. A value is a tuple: function,
    number of its call, name of the value, value."""
    database = sojourn.path("types.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    rules = [part for pattern in patterns for part in ("--value", pattern)]
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *rules, *options], text=True)
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    numbers, found, calls = {}, [], set()
    for row in sojourn.sql(database, """
            SELECT f.name, a.call_id, coalesce(t.name, '') AS value_name, a.value, a.position
            FROM arguments AS a JOIN calls USING (session_id, call_id) JOIN functions AS f USING (function_id)
            LEFT JOIN value_types AS t ON t.session_id = a.session_id AND t.function_id = f.function_id
              AND t.position = a.position ORDER BY a.call_id, a.position"""):
        name = plain_name(row["name"])
        of = numbers.setdefault(name, {})
        number = of.setdefault(row["call_id"], len(of) + 1)
        calls.add((name, number))
        found.append((name, number, row["value_name"] if row["position"] else "result", shown(row["value"])))
    return done, found, database
