import os
import shutil
import sqlite3
import sys
import tempfile
import traceback


def start(path):
    global PATH
    PATH = path
    root = connect(None, None)
    if MODE == "wal":
        root.execute("pragma journal_mode = wal")
    return root


def connect(root, session):
    where = "file:%s%s" % (PATH, "?cache=shared" if MODE == "shared-cache" else "")
    connection = sqlite3.connect(where, timeout=0, isolation_level=None, uri=True)
    connection.execute("pragma foreign_keys = on")
    if session in LEVELS:
        connection.execute("pragma read_uncommitted = 1")
    return connection


def execute(connection, sql):
    cursor = connection.execute(sql)
    if cursor.description:
        return cursor.fetchall()
    return "affected %d" % cursor.rowcount if cursor.rowcount >= 0 else OK
