"""Sends requests to the dashboard's server, as a browser does."""
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from sojourn_testing import PATIENCE_S, check


class Pages:
    """The dashboard's server, over a database or a cluster."""

    def __init__(self, sojourn, *words):
        self.process = subprocess.Popen([sojourn.program, "ui", "--no-open", *words], stdout=subprocess.PIPE, text=True,
                                        env=sojourn.environment)
        line = self.process.stdout.readline()
        check("Ctrl-C" in line, f"ui {words}: {line}")
        port, token = re.search(r"127.0.0.1:(\d+)/#token=(\w+)", line).groups()
        self.port = int(port)
        self.login = {"Authorization": f"Bearer {token}"}

    def open(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", headers=self.login)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def get(self, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        with self.open(path + query) as answer:
            return json.loads(answer.read())

    def text(self, path):
        """Returns the status code and the unparsed body."""
        try:
            with self.open(path) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def rows(self, sql, **parameters):
        answer = self.get("sql", sql=sql, **parameters)
        return [dict(zip(answer["columns"], row)) for row in answer["rows"]]

    def listed(self, **filters):
        return {row["uuid"]: row for row in self.get("sessions", **filters)["items"]}

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
