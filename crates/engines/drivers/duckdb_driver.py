"""An Isolde driver for DuckDB: any version of the wheel `duckdb`.

What the wheel leaves open and this driver has to find out:
- whether a transaction is open: counted by the statements, and after an error
  asked of the engine (`txid_current` stays the same inside a transaction);
- whether it is aborted: every statement but its end then says "Current
  transaction is aborted". Which errors abort differs between versions, so the
  driver asks instead of keeping a table;
- that COMMIT of an aborted transaction is answered with success and rolls back.
"""
import os
import shutil
import sys
import tempfile

from isolde_driver import affected, ends, error, is_panic, ok, opens, refuse, rows, serve, words

try:
    import duckdb
except ImportError as e:
    refuse("the wheel `duckdb` cannot be imported: %s" % e)

COUNTED = ("insert", "update", "delete", "merge")
SILENT = ("begin", "start", "commit", "end", "rollback", "abort", "create", "drop", "alter",
          "set", "reset", "checkpoint", "use", "attach", "detach", "load", "vacuum", "analyze")


def classify(e):
    kind, text = type(e).__name__, str(e)
    if kind == "TransactionException":
        if "Current transaction is aborted" in text:
            return "poisoned"
        if "constraint viol" in text:
            return "constraint"
        if "onflict" in text:
            return "write_conflict"
        return "rejected" if "cannot " in text else "other"
    if kind == "ConstraintException":
        return "constraint"
    if kind == "InterruptException":
        return "cancelled"
    if kind in ("ParserException", "BinderException", "CatalogException", "SyntaxException",
                "NotImplementedException"):
        return "rejected"
    if kind in ("InternalException", "FatalException") or is_panic(e):
        return "internal"
    return "other"


class Connection:
    def __init__(self, root):
        self.cursor = root.cursor()
        self.tx = "idle"

    def execute(self, sql):
        try:
            reply = self.run(sql)
        except BaseException as e:
            was = self.tx
            self.tx = self.ask_tx()
            effect = {"failed": "poisoned", "lost": "lost"}.get(self.tx)
            if self.tx == "idle" and was != "idle":
                effect = "rolled_back"
            if self.tx == "lost":
                self.tx = "idle"
            return error(type(e).__name__, str(e), classify(e), effect or "statement", tx=self.tx)
        if opens(sql):
            self.tx = "open"
        elif ends(sql):
            if self.tx == "failed" and words(sql)[0] in ("commit", "end"):
                reply["rolled_back"] = True
            self.tx = "idle"
        return {**reply, "tx": self.tx}

    def run(self, sql):
        first = words(sql)[0]
        self.cursor.execute(sql)
        if first in SILENT:
            return ok()
        columns = [column[0] for column in self.cursor.description or []]
        cells = self.cursor.fetchall()
        if first in COUNTED and columns == ["Count"]:
            return affected(cells[0][0] if cells else 0)
        return rows(columns, cells) if columns else ok()

    def ask_tx(self):
        """Where the transaction stands after an error. Not asked after a
        success: the question would be the transaction's first read and so
        take its snapshot too early."""
        try:
            first = self.cursor.execute("select txid_current()").fetchall()
            second = self.cursor.execute("select txid_current()").fetchall()
            return "open" if first == second else "idle"
        except BaseException as e:
            if "aborted" in str(e):
                return "failed"
            print("after an error, the connection says: %s" % e, file=sys.stderr, flush=True)
            return "lost"

    def interrupt(self):
        self.cursor.interrupt()

    def close(self):
        self.cursor.close()


class Database:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="isolde-duckdb-")
        self.root = duckdb.connect(os.path.join(self.folder, "db"))

    def hello(self):
        return {
            "name": "duckdb",
            "version": duckdb.__version__,
            "can": ["cancel"] if hasattr(self.root, "interrupt") else [],
            "profile": {
                "levels": [{"level": "SNAPSHOT", "by": "optimistic multi-version concurrency"}],
                "default_level": "SNAPSHOT",
                "waiting": "never",
                "documentation": "https://duckdb.org/docs/stable/sql/statements/transactions",
            },
        }

    def connect(self):
        return Connection(self.root)

    def tables(self, connection):
        found = connection.cursor.execute(
            "select table_name from information_schema.tables where table_schema = 'main'"
            " and table_type = 'BASE TABLE'")
        return [row[0] for row in found.fetchall()]

    def clear(self, connection):
        views = connection.cursor.execute(
            "select table_name from information_schema.tables where table_schema = 'main'"
            " and table_type = 'VIEW'").fetchall()
        for (view,) in views:
            connection.cursor.execute('drop view "%s"' % view.replace('"', '""'))
        # A table that others refer to cannot go before them.
        left = self.tables(connection)
        while left:
            stuck, reason = [], None
            for table in left:
                try:
                    connection.cursor.execute('drop table "%s"' % table.replace('"', '""'))
                except duckdb.Error as e:
                    stuck.append(table)
                    reason = e
            if len(stuck) == len(left):
                raise reason
            left = stuck

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


serve(Database())
