import os
import shutil
import sys
import tempfile
import traceback

try:
    import turso
except ImportError as e:
    print("pip install pyturso: %s" % e, file=sys.stderr)
    sys.exit(2)


def start(path):
    global PATH
    PATH = path
    return connect(None, None)


def connect(root, session):
    try:
        connection = turso.connect(PATH, isolation_level=None)
    except TypeError:  # up to 0.3
        connection = turso.connect(PATH)
    if MODE not in ("", "wal"):
        connection.cursor().execute("PRAGMA journal_mode = '%s'" % MODE)
    return connection


def execute(connection, sql):
    cursor = connection.cursor()
    if not hasattr(connection, "in_transaction"):
        # Up to 0.3 a write opens a transaction by itself, unless a comment is in front.
        cursor.execute("/**/" + sql)
        rows = cursor.fetchall()
        return rows if rows or sql.split(None, 1)[0].lower() in ("select", "with") else OK
    cursor.execute(sql)
    if cursor.description:
        return cursor.fetchall()
    return "affected %d" % cursor.rowcount if cursor.rowcount >= 0 else OK
