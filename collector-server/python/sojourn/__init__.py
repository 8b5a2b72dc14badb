"""Asks Sojourn's databases in Python.

    import sojourn
    lab = sojourn.open("lab.db")
    for call in lab.calls(function="parse_*", limit=10):
        print(call["function"], call["duration_ns"])
    frame = lab.calls(session="last").frame()       # a pandas.DataFrame

Times are nanoseconds; `start_ns` and `end_ns` count from the start of the session. The database is
opened for reading only. A Lab belongs to the thread that opened it, as a connection of sqlite3 does.
The module needs Python 3.9, its sqlite3 with extensions (Debian's has them), and for `frame` pandas.
"""
import os
import sqlite3

__all__ = ["Lab", "Rows", "SojournError", "open"]
__version__ = "0.1.0"

_EXTENSION = "libsojourn-sqlite.so"


class SojournError(Exception):
    """A query failed. The text says why and what to do."""


class Rows:
    """The rows of a query. They can be read once; each is read when it is needed."""

    def __init__(self, cursor):
        self._cursor = cursor
        self.columns = [column[0] for column in cursor.description]

    def __iter__(self):
        try:
            for row in self._cursor:
                yield dict(zip(self.columns, row))
        except sqlite3.Error as error:
            raise SojournError(str(error)) from error

    def list(self):
        """Returns all rows as dictionaries."""
        return list(self)

    def frame(self):
        """Returns all rows as a pandas.DataFrame."""
        try:
            import pandas  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise SojournError("a data frame needs pandas: apt install python3-pandas") from error
        return pandas.DataFrame.from_records(self._cursor.fetchall(), columns=self.columns)


def _extension_path():
    """Returns the extension that is installed with this module, or its bare name."""
    named = os.environ.get("SOJOURN_EXTENSION")
    if named:
        return named
    prefix = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))
    installed = os.path.join(prefix, "lib", "sojourn", _EXTENSION)
    return installed if os.path.exists(installed) else _EXTENSION


def _connect(path):
    if not os.path.exists(path):
        raise SojournError(f"{path} does not exist")
    connection = sqlite3.connect(f"file:{_quoted(os.path.abspath(path))}?mode=ro", uri=True)
    try:
        connection.enable_load_extension(True)
        connection.load_extension(_extension_path())
        connection.enable_load_extension(False)
        connection.execute("SELECT count(*) FROM sessions").fetchone()
    except AttributeError as error:
        connection.close()
        raise SojournError("this Python's sqlite3 loads no extensions; Debian's python3 does") from error
    except sqlite3.Error as error:
        connection.close()
        raise SojournError(f"{path}: {error}") from error
    return connection


def _quoted(path):
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


class Lab:
    """A database. Close it, or use it as a context manager."""

    def __init__(self, path):
        self.path = path
        self._connection = _connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the database. Rows that were not read are lost."""
        self._connection.close()

    def query(self, sql, **parameters):
        """Runs a query in SQL. `:name` in the query is the parameter of that name."""
        try:
            return Rows(self._connection.execute(sql, parameters))
        except sqlite3.Error as error:
            raise SojournError(str(error)) from error

    def session_id(self, session="last"):
        """Returns the id of a session: its id, the beginning of its uuid, its name, or "last"."""
        if session == "last":
            found = self.query("SELECT session_id FROM sessions ORDER BY session_id DESC LIMIT 1").list()
        elif isinstance(session, int):
            found = self.query("SELECT session_id FROM sessions WHERE session_id = :session", session=session).list()
        else:
            found = self.query("SELECT session_id FROM sessions WHERE name = :session OR lower(hex(uuid)) LIKE "
                               "lower(:session) || '%'", session=session).list()
        if len(found) != 1:
            what = "is not there" if not found else "is the name of several"
            raise SojournError(f"session {session!r} {what}; Lab.sessions() lists them")
        return found[0]["session_id"]

    def sessions(self):
        """Lists the sessions, the newest first."""
        return self.query("SELECT s.session_id, lower(hex(s.uuid)) AS uuid, d.name AS device, s.name, s.command, s.state, "
                          "s.started_realtime_ns, s.stored_calls AS calls, s.lost_calls FROM sessions AS s "
                          "JOIN devices AS d USING (device_id) ORDER BY s.session_id DESC")

    def functions(self, session="last"):
        """Returns the sums of each function of a session, the longest self time first."""
        return self.query("SELECT s.function_id, f.name AS function, m.path AS module, s.calls, s.total_ns, s.self_ns, "
                          "s.min_ns, s.max_ns FROM function_stats AS s JOIN functions AS f USING (function_id) "
                          "JOIN modules AS m USING (module_id) WHERE s.session_id = :session ORDER BY s.self_ns DESC",
                          session=self.session_id(session))

    def tree(self, session="last"):
        """Returns the call paths of a session, each below its caller."""
        return self.query("SELECT path_id, parent_path_id, depth, name AS function, calls, total_ns, self_ns, min_ns, "
                          "max_ns FROM call_tree(:session)", session=self.session_id(session))

    def calls(self, session="last", function=None, module=None, thread=None, from_ns=None, to_ns=None,
              at_least_ns=None, limit=None):
        """Returns single calls in the order of their entries on each thread.

        `function` and `module` are patterns (GLOB), `thread` is a name or a tid. `from_ns` and `to_ns` choose
        calls by their entry, `at_least_ns` by their duration."""
        conditions, parameters = ["c.session_id = :session"], {"session": self.session_id(session)}
        for given, value, condition in (
                ("function", function, "c.function_id IN (SELECT function_id FROM functions WHERE name GLOB :function)"),
                ("module", module, "c.function_id IN (SELECT function_id FROM functions JOIN modules USING (module_id) "
                                   "WHERE path GLOB :module OR path GLOB '*/' || :module)"),
                ("thread", thread, "c.thread_id IN (SELECT thread_id FROM threads WHERE session_id = :session AND "
                                   "(name = :thread OR tid = :thread))"),
                ("from_ns", from_ns, "c.start_ns >= :from_ns"), ("to_ns", to_ns, "c.start_ns <= :to_ns"),
                ("at_least_ns", at_least_ns, "c.duration_ns >= :at_least_ns")):
            if value is not None:
                conditions.append(condition)
                parameters[given] = value
        sql = ("SELECT c.call_id, c.parent_id, c.thread_id, t.name AS thread, c.function_id, f.name AS function, c.depth, "
               "c.start_ns, c.end_ns, c.duration_ns, c.self_ns, c.ending FROM calls AS c "
               "LEFT JOIN functions AS f ON f.function_id = c.function_id "
               f"LEFT JOIN threads AS t ON t.thread_id = c.thread_id WHERE {' AND '.join(conditions)} ORDER BY c.call_id")
        if limit is not None:
            sql += " LIMIT :limit"
            parameters["limit"] = limit
        return self.query(sql, **parameters)

    def values(self, session="last"):
        """Returns recorded arguments, results and errno; position 0 is the result."""
        return self.query("SELECT a.call_id, a.position, a.kind, a.value, a.note FROM arguments AS a "
                          "WHERE a.session_id = :session ORDER BY a.call_id, a.position", session=self.session_id(session))

    def losses(self, session="last"):
        """Returns what is missing in a session, and why."""
        return self.query("SELECT reason, calls, events, start_ns, end_ns FROM gaps WHERE session_id = :session "
                          "ORDER BY start_ns", session=self.session_id(session))

    def diff(self, before, after):
        """Compares the functions of two sets of sessions, such as "build:a1" and "build:b2"."""
        return self.query("SELECT * FROM diff_functions(:before, :after)", before=before, after=after)


def open(path):  # pylint: disable=redefined-builtin
    """Opens a database for reading. Raises SojournError if it is not one of Sojourn's."""
    return Lab(path)
