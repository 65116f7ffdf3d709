import os
import shutil
import sys
import tempfile
import traceback

try:
    import duckdb
except ImportError as e:
    print("pip install duckdb: %s" % e, file=sys.stderr)
    sys.exit(2)


def start(path):
    return duckdb.connect(path)


def connect(root, session):
    return root.cursor()


def execute(connection, sql):
    connection.execute(sql)
    first = sql.split(None, 1)[0].lower()
    columns = [column[0] for column in connection.description or []]
    if first in ("insert", "update", "delete", "merge") and columns == ["Count"]:
        return "affected %d" % connection.fetchall()[0][0]
    return connection.fetchall() if columns and first not in ("begin", "commit", "rollback") else OK
