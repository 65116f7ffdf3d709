"""An Isolde driver for Turso: any version of the wheel `pyturso`; `--mvcc` for its MVCC mode.

Three generations of the wheel:
- up to 0.3 (`limbo`): no isolation_level, no in_transaction, no columns, and
  INSERT, UPDATE and DELETE open a transaction behind one's back. The wheel looks
  at how the text begins, so a comment in front keeps it from doing so. Whether
  a transaction is open is asked with BEGIN, which is refused inside of one.
- 0.4 and 0.5: a connection may not see tables that another one has made after
  it was opened. The driver tries that at the start, and then connects anew
  where a session is idle and the schema has changed; hello's settings say so.
- later: as one would expect.
"""
import os
import shutil
import sys
import tempfile

from isolde_driver import (affected, describe, ends, error, is_panic, ok, opens, refuse, rows,
                           serve, words)

try:
    from importlib.metadata import version as version_of

    import turso
    VERSION = version_of("pyturso")
except Exception as e:  # also a wheel that does not fit this machine
    refuse("the wheel `pyturso` cannot be imported: %s" % e)

MVCC = "--mvcc" in sys.argv[1:]
READS = ("select", "with", "values", "pragma", "explain")


def classify(e):
    text = str(e).lower()
    if is_panic(e):
        return "internal"
    if "snapshot is stale" in text:
        return "serialization"
    if "conflict" in text:
        return "write_conflict"
    if "locked" in text or "busy" in text:
        return "busy"
    if "constraint" in text:
        return "constraint"
    if "interrupt" in text:
        return "cancelled"
    if "schema changed" in text or "corrupt" in text:
        return "other"
    if "syntax" in text or "parse" in text or "no such" in text or "unexpected token" in text:
        return "rejected"
    if "cannot commit" in text or "cannot rollback" in text or "cannot start" in text:
        return "rejected"
    return "internal" if type(e).__name__ == "InternalError" else "other"


def raw_connect(path):
    try:
        return turso.connect(path, isolation_level=None)
    except TypeError:
        return turso.connect(path)


class Connection:
    def __init__(self, database):
        self.database = database
        self.dead = None
        self.tracked = False
        self.reconnect()

    def reconnect(self):
        self.raw = raw_connect(self.database.path)
        self.modern = hasattr(self.raw, "in_transaction")
        self.schema = self.database.schema
        if MVCC:
            self.run("PRAGMA journal_mode = '%s'" % self.database.mode)

    def in_transaction(self):
        return self.raw.in_transaction if self.modern else self.tracked

    def execute(self, sql):
        if self.dead:
            return error("dead", self.dead, "lost", "lost")
        was = self.in_transaction()
        if not was and self.database.stale and self.schema != self.database.schema:
            self.reconnect()
        try:
            reply = self.run(sql)
        except BaseException as e:
            return self.failed(e, was)
        if opens(sql) or ends(sql):
            self.tracked = opens(sql)
        if words(sql)[0] in ("create", "drop", "alter"):
            self.database.schema += 1
            self.schema = self.database.schema
        return {**reply, "tx": "open" if self.in_transaction() else "idle"}

    def run(self, sql):
        cursor = self.raw.cursor()
        if not self.modern:
            cursor.execute("/**/" + sql)
            cells = cursor.fetchall()
            if not cells and words(sql)[0] not in READS:
                return ok()
            columns = len(cells[0]) if cells else 0
            return rows(["column%d" % (i + 1) for i in range(columns)], cells)
        cursor.execute(sql)
        if cursor.description:
            return rows([column[0] for column in cursor.description], cursor.fetchall())
        counted = words(sql)[0] in ("insert", "update", "delete", "replace", "with")
        return affected(cursor.rowcount) if counted and cursor.rowcount >= 0 else ok()

    def failed(self, e, was):
        """What the error left: asked of the connection, not taken from a table."""
        if is_panic(e):
            print(describe(e), file=sys.stderr, flush=True)
        try:
            if not self.modern and was:
                self.tracked = self.still_open()
            if is_panic(e):
                self.run("select 1")
            now = self.in_transaction()
        except BaseException as after:
            self.dead = "the connection is of no use after %s; it says %s" % (
                describe(e), describe(after))
            return error(type(e).__name__, str(e), classify(e), "lost")
        effect = "rolled_back" if was and not now else "statement"
        if is_panic(e) and now:
            effect = "poisoned"
        kind = classify(e)
        if kind == "busy" and effect == "rolled_back":
            kind = "write_conflict"  # busy would ask for the statement once more
        code = type(e).__name__
        return error(code, str(e), kind, effect, tx="open" if now else "idle")

    def still_open(self):
        try:
            self.run("BEGIN")
        except Exception as e:
            if "within a transaction" in str(e):
                return True
            raise
        self.run("ROLLBACK")
        return False

    def close(self):
        # A wheel that drops a connection with an open transaction need not
        # end it; the locks would outlive the session.
        if not self.dead and self.in_transaction():
            self.run("ROLLBACK")
        self.raw.close()


class Database:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="isolde-turso-")
        self.path = os.path.join(self.folder, "db")
        self.files = 0
        self.schema = 0
        self.stale = False
        self.mode = self.find_mvcc() if MVCC else "wal"
        self.stale = self.is_stale()

    def find_mvcc(self):
        """The name of the journal mode; it has changed between versions."""
        said = []
        for name in ("mvcc", "experimental_mvcc"):
            try:
                cursor = raw_connect(self.path).cursor()
                cursor.execute("PRAGMA journal_mode = '%s'" % name)
                if cursor.fetchall()[0][0] == name:
                    cursor.execute("BEGIN CONCURRENT")
                    cursor.execute("ROLLBACK")
                    return name
                said.append("%s: ignored" % name)
            except BaseException as e:
                said.append("%s: %s" % (name, e))
        self.close()
        refuse("pyturso %s has no MVCC through PRAGMA journal_mode (%s)" % (VERSION, "; ".join(said)))

    def is_stale(self):
        """Whether a connection misses tables made after it was opened."""
        first, second = Connection(self), Connection(self)
        first.run("CREATE TABLE isolde_probe (a INTEGER)")
        try:
            second.run("SELECT a FROM isolde_probe")
            return False
        except Exception:
            return True
        finally:
            first.run("DROP TABLE isolde_probe")

    def hello(self):
        level = "SNAPSHOT" if MVCC else "SERIALIZABLE"
        how = "BEGIN CONCURRENT on multi-version rows" if MVCC else "one writer at a time"
        settings = {"journal_mode": self.mode}
        if self.stale:
            settings["workaround"] = "idle sessions connect anew after DDL of others"
        if not hasattr(raw_connect(self.path), "in_transaction"):
            settings["affected"] = "not counted by this version"
        return {
            "name": "turso+mvcc" if MVCC else "turso",
            "version": VERSION,
            "can": [],
            "settings": settings,
            "profile": {
                "levels": [{"level": level, "by": how}],
                "default_level": level,
                "begin": "begin concurrent" if MVCC else "begin",
                "waiting": "retry",
                "documentation": "https://github.com/tursodatabase/turso/tree/main/docs",
            },
        }

    def connect(self):
        return Connection(self)

    def named(self, connection, kind):
        reply = connection.execute("SELECT name FROM sqlite_schema WHERE type = '%s'" % kind)
        if reply["reply"] != "rows":
            raise RuntimeError(reply["message"])
        names = [row[0] for row in reply["rows"]]
        return [n for n in names if not n.startswith(("sqlite_", "__turso_internal"))]

    def tables(self, connection):
        return self.named(connection, "table")

    def clear(self, connection):
        for kind in ("view", "table"):
            for name in self.named(connection, kind):
                reply = connection.execute('DROP %s "%s"' % (kind, name.replace('"', '""')))
                if reply["reply"] == "error":
                    raise RuntimeError("DROP %s %s: %s" % (kind, name, reply["message"]))
        if self.tables(connection):
            # Early versions keep what was dropped: go on in a new file.
            self.files += 1
            self.path = os.path.join(self.folder, "db%d" % self.files)
            self.schema += 1
            self.stale = True

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


serve(Database())
