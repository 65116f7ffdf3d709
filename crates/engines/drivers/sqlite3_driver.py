#!/usr/bin/env python3
"""An Isolde driver for Python's sqlite3, complete: the example of docs/driver-protocol.md.

A session is a connection with its own thread, so that a long statement delays nothing else."""
import json, os, queue, shutil, sqlite3, sys, tempfile, threading
FOLDER = tempfile.mkdtemp(prefix="isolde-sqlite3-")
HELLO = {
    "reply": "hello", "protocol": 1, "name": "python-sqlite3", "can": ["cancel"],
    "version": sqlite3.sqlite_version, "settings": {"journal_mode": "wal"},
    "follows": {"rules": 1, "engine": "sqlite+wal", "version": sqlite3.sqlite_version},
    "profile": {
        "levels": [{"level": "SERIALIZABLE", "by": "one writer at a time", "allows": []}],
        "default_level": "SERIALIZABLE", "waiting": "retry",
        "documentation": "https://sqlite.org/isolation.html",
    },
}
printing = threading.Lock()

def answer(id, reply):
    with printing:
        print(json.dumps({"id": id, **reply}), flush=True)

def error(code, message, kind="other"):
    return {"reply": "error", "code": code, "message": message, "class": kind}

def connect():
    path = os.path.join(FOLDER, "db")
    connection = sqlite3.connect(path, 0, isolation_level=None, check_same_thread=False)
    connection.executescript("pragma journal_mode = wal; pragma foreign_keys = on")
    return connection

def cell(value):
    endless = isinstance(value, float) and value - value != 0  # JSON has no infinity
    return ({"bytes": value.hex()} if isinstance(value, bytes)
            else {"float": str(value)} if endless else value)

def execute(connection, sql):
    try:
        cursor = connection.execute(sql)
        if cursor.description:
            rows = [[cell(value) for value in row] for row in cursor.fetchall()]
            reply = {"reply": "rows", "columns": [c[0] for c in cursor.description], "rows": rows}
        else:
            counted = {"reply": "affected", "count": cursor.rowcount}
            reply = counted if cursor.rowcount >= 0 else {"reply": "ok"}
    except (sqlite3.Error, sqlite3.Warning) as e:
        code = getattr(e, "sqlite_errorname", type(e).__name__)  # the name: Python 3.11 and later
        kinds = {"SQLITE_BUSY_SNAPSHOT": "serialization", "SQLITE_INTERRUPT": "cancelled",
                 "SQLITE_ERROR": "rejected", "IntegrityError": "constraint"}
        locked = "busy" if "locked" in str(e) else kinds.get(type(e).__name__, "other")
        reply = error(code, str(e), kinds.get(code, locked))
    return {**reply, "tx": "open" if connection.in_transaction else "idle"}

def serve(connection, requests):
    while True:
        id, sql = requests.get()
        if sql is None:  # close, after all that was asked before
            connection.close()
            return answer(id, {"reply": "ok"})
        answer(id, execute(connection, sql))

def tables():
    names = "select name from sqlite_master where type = 'table' and name not like 'sqlite%'"
    return sorted(row[0] for row in own.execute(names))

def handle(id, request):
    kind, number = request.get("request"), request.get("session")
    if kind in ("execute", "close", "cancel") and number not in sessions:
        return answer(id, error("session", f"there is no session {number}"))
    if kind == "execute":
        return sessions[number][1].put((id, request["sql"]))
    if kind == "close":
        return sessions.pop(number)[1].put((id, None))
    if kind == "open":
        sessions[number] = (connect(), queue.Queue())
        threading.Thread(target=serve, args=sessions[number], daemon=True).start()
    elif kind == "cancel":
        sessions[number][0].interrupt()
    elif kind == "clear":
        own.execute("pragma foreign_keys = off")  # a table may refer to one dropped before it
        for table in tables():
            own.execute('drop table "%s"' % table.replace('"', '""'))
    answer(id, {"reply": "ok"} if kind in ("open", "cancel", "clear", "bye") else
           HELLO if kind == "hello" else {"reply": "tables", "tables": tables()}
           if kind == "tables" else error("request", f"unknown request {kind}"))
    return kind == "bye"

own, sessions = connect(), {}
for line in sys.stdin:
    id = None  # and so it stays where the line is no request
    try:
        request = json.loads(line)
        id = request["id"]
        if handle(id, request):
            break
    except (sqlite3.Error, ValueError, TypeError, KeyError) as e:
        answer(id, error(type(e).__name__, str(e)))
shutil.rmtree(FOLDER, ignore_errors=True)
