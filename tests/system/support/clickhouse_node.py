"""Runs a ClickHouse server of Debian's package on the loopback, with its own ports and files."""
import contextlib
import glob
import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from sojourn_testing import PATIENCE_S, check, wait_for

CONFIG = """<yandex>
 <logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
 <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
 <interserver_http_port>{between}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
 <listen_host>127.0.0.1</listen_host><timezone>UTC</timezone>
 <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
 <users_config>{folder}/users.xml</users_config>
 <default_profile>default</default_profile><default_database>default</default_database>
 <mark_cache_size>8388608</mark_cache_size><max_connections>64</max_connections>
{more}</yandex>
"""
USERS = """<yandex>
 <profiles><default><max_memory_usage>2000000000</max_memory_usage><log_queries>0</log_queries>
  <max_threads>2</max_threads><background_pool_size>2</background_pool_size>
  <background_schedule_pool_size>4</background_schedule_pool_size></default>
  <reading><readonly>1</readonly><max_threads>2</max_threads></reading></profiles>
 <users><default><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
  <profile>default</profile><quota>default</quota></default>
  <reader><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
  <profile>reading</profile><quota>default</quota></reader></users>
 <quotas><default></default></quotas>
</yandex>
"""

# The part of the configuration for a server that also serves over TLS, with its own certificate.
TLS = """ <https_port>{https}</https_port>
 <openSSL><server><certificateFile>{folder}/node.pem</certificateFile><privateKeyFile>{folder}/node.key</privateKeyFile>
  <verificationMode>none</verificationMode></server></openSSL>
"""

STARTS = 60
# A machine under load takes minutes to start a server. A server that has ended is noticed at once.
SERVER_PATIENCE_S = 1200

def lasting_port():
    """Returns a port that the kernel never gives to a connection as its local port. So the port stays free while the
    server is down."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Node:
    """One server. `version` is that of Debian's package. `more` is XML for its configuration. With `tls` it also listens at `https`, as localhost."""

    version = "18.16.1"

    def __init__(self, folder, password="", more="", tcp=None, tls=False):
        self.folder = folder
        self.password = password
        self.http, self.tcp = lasting_port(), tcp or lasting_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.process, self.left = None, 0
        for name in ("data", "tmp", "files"):
            os.makedirs(os.path.join(folder, name))
        if tls:
            self.https, self.certificate = lasting_port(), os.path.join(folder, "node.pem")
            more += TLS.format(https=self.https, folder=folder)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                            "-addext", "subjectAltName=DNS:localhost", "-keyout", os.path.join(folder, "node.key"),
                            "-out", self.certificate], check=True, capture_output=True, timeout=PATIENCE_S)
        self.write("config.xml", CONFIG.format(folder=folder, http=self.http, tcp=self.tcp,
                                               between=lasting_port(), more=more))
        self.write("users.xml", USERS.format(password=password))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def launch(self):
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                ["/usr/sbin/clickhouse-server", f"--config-file={self.folder}/config.xml"], stdout=out,
                stderr=out)

    def start(self):
        """Starts the server, and starts it again if it ends, as a service manager does. It ends if ZooKeeper breaks
        the connection while the server attaches its tables."""
        self.left = STARTS
        self.launch()
        wait_for(f"ClickHouse in {self.folder}", self.answers, SERVER_PATIENCE_S)

    def answers(self):
        if self.process.poll() is not None:
            self.left -= 1
            check(self.left > 0, f"ClickHouse ended with {self.process.returncode}: {self.last_words()}")
            time.sleep(0.3)
            self.launch()
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def last_words(self):
        words = ""
        for name in ("out", "errors"):
            with contextlib.suppress(FileNotFoundError), \
                    open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as log:
                words += log.read()[-1500:]
        return words

    def request(self, sql, database, settings):
        query = urllib.parse.urlencode({"database": database}) + (f"&{settings}" if settings else "")
        return urllib.request.urlopen(urllib.request.Request(
            f"{self.url}/?{query}", data=sql.encode(),
            headers={"X-ClickHouse-User": "default", "X-ClickHouse-Key": self.password}), timeout=SERVER_PATIENCE_S)

    def ask(self, sql, database="default", settings=""):
        try:
            with self.request(sql, database, settings) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            check(False, f"{sql}: {refused.read().decode()}")

    def can(self, sql, settings, database="sojourn"):
        """True if the server answers a query with these settings."""
        try:
            with self.request(sql, database, settings) as answer:
                return answer.read() != b""
        except urllib.error.HTTPError:
            return False

    def rows(self, sql, database="sojourn"):
        """Returns the rows as lists of strings."""
        return [line.split("\t") for line in self.ask(sql, database).splitlines()]

    def stop(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(SERVER_PATIENCE_S)


class Keeper:
    """A ZooKeeper of Debian's package, for replicated tables."""

    def __init__(self, folder):
        self.folder = folder
        self.port = lasting_port()
        self.process = None
        os.makedirs(folder)
        with open(os.path.join(folder, "zoo.cfg"), "w", encoding="utf-8") as file:
            file.write(f"tickTime=1000\ndataDir={folder}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                       "admin.enableServer=false\n4lw.commands.whitelist=ruok\n")

    def start(self):
        jars = ":".join(glob.glob("/usr/share/java/*.jar"))
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                ["java", "-Xmx256m", "-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 os.path.join(self.folder, "zoo.cfg")], stdout=out, stderr=out)
        wait_for(f"ZooKeeper in {self.folder}", self.answers, SERVER_PATIENCE_S)

    def answers(self):
        check(self.process.poll() is None, f"ZooKeeper ended with {self.process.returncode}, see {self.folder}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as peer:
                peer.sendall(b"ruok")
                return peer.recv(4) == b"imok"
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(SERVER_PATIENCE_S)
