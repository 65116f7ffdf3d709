"""What Isolde's Python drivers share; copy it beside a driver of your own.

A driver gives `serve` a database object:

    hello()     -> the fields of the hello reply (name, version, profile, ...)
    connect()   -> a connection; called in the thread that will use it
    tables(connection) -> the names of the tables
    clear(connection)  -> empties the database
    close()     -> removes what the driver has made

and a connection has

    execute(sql) -> a reply: rows(...), affected(...), ok() or error(...)
    close()
    interrupt()  -> ends the statement, from another thread; where `can` says so

Each session has a thread of its own, because a statement may block and because
some libraries want a connection to stay in the thread that made it.
See docs/driver-protocol.md for the protocol.
"""
import json
import os
import queue
import sys
import threading
import traceback
from decimal import Decimal

PROTOCOL = 1
_printing = threading.Lock()


def ok(**more):
    return {"reply": "ok", **more}


def rows(columns, cells, **more):
    cells = [[cell(value) for value in row] for row in cells]
    return {"reply": "rows", "columns": list(columns), "rows": cells, **more}


def affected(count, **more):
    return {"reply": "affected", "count": count, **more}


def error(code, message, kind=None, effect=None, **more):
    reply = {"reply": "error", "code": code, "message": message, **more}
    if kind:
        reply["class"] = kind
    if effect:
        reply["effect"] = effect
    return reply


def cell(value):
    """A value as the protocol writes it: typed, and NULL apart from text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else {"decimal": str(value)}
    if isinstance(value, float):
        return value if value - value == 0 else {"float": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    return str(value)


def words(sql, count=2):
    """The first words of a statement in lower case, comments left out."""
    found, at = [], 0
    while at < len(sql) and len(found) < count:
        if sql[at].isspace() or sql[at] in ";(":
            at += 1
        elif sql.startswith("--", at):
            at = (sql.find("\n", at) + 1) or len(sql)
        elif sql.startswith("/*", at):
            end = sql.find("*/", at)
            at = len(sql) if end < 0 else end + 2
        else:
            start = at
            while at < len(sql) and (sql[at].isalnum() or sql[at] == "_"):
                at += 1
            at = max(at, start + 1)
            found.append(sql[start:at].lower())
    return found + [""] * (count - len(found))


def opens(sql):
    first, second = words(sql)
    return first == "begin" or (first, second) == ("start", "transaction")


def ends(sql):
    first, second = words(sql)
    if first == "rollback":
        third = words(sql, 3)[2]
        return second != "to" and third != "to"
    return first in ("commit", "end", "abort")


def is_panic(exception):
    """A Rust panic that came through PyO3: an exception, but no `Exception`."""
    return type(exception).__name__ == "PanicException"


def describe(exception):
    return "%s: %s" % (type(exception).__name__, exception)


def _print(reply):
    text = json.dumps(reply, allow_nan=False)
    with _printing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


class _Session:
    """One connection in one thread, with its requests in order."""

    def __init__(self, database):
        self.database = database
        self.requests = queue.Queue()
        self.connection = None
        threading.Thread(target=self._run, daemon=True).start()

    def ask(self, id, what):
        """`what` gets the connection and gives a reply; none ends the session."""
        self.requests.put((id, what))

    def _run(self):
        while True:
            id, what = self.requests.get()
            reply = self._answer(what)
            _print({"id": id, **reply})
            if what is None:
                return

    def _answer(self, what):
        try:
            if what is None:
                if self.connection is not None:
                    self.connection.close()
                return ok()
            if self.connection is None:
                self.connection = self.database.connect()
            return what(self.connection)
        except BaseException as e:  # a panic is not an Exception
            traceback.print_exc()
            if what is None:
                return ok()
            return error(type(e).__name__, str(e), "internal" if is_panic(e) else None)


def serve(database):
    """Answers requests until `bye` or the end of stdin."""
    hello = {"reply": "hello", "protocol": PROTOCOL, **database.hello()}
    own, sessions = _Session(database), {}

    def clear(connection):
        database.clear(connection)
        return ok()

    def tables(connection):
        return {"reply": "tables", "tables": sorted(database.tables(connection))}

    def handle(id, request):
        """The reply, or none where a session's thread gives it."""
        kind, number = request.get("request"), request.get("session")
        if kind in ("open", "close", "execute", "cancel") and not isinstance(number, int):
            return error("request", "`session` must be a number")
        if kind in ("close", "execute", "cancel") and number not in sessions:
            return error("session", "there is no session %s" % number)
        if kind == "hello":
            if request.get("protocol") != PROTOCOL:
                return error("protocol", "this driver speaks protocol %d" % PROTOCOL)
            return hello
        if kind == "open":
            if number in sessions:
                return error("session", "session %d is open already" % number)
            sessions[number] = _Session(database)
            return sessions[number].ask(id, lambda connection: ok())
        if kind == "close":
            return sessions.pop(number).ask(id, None)
        if kind == "execute":
            sql = request.get("sql")
            if not isinstance(sql, str):
                return error("request", "`sql` must be text")
            return sessions[number].ask(id, lambda connection: connection.execute(sql))
        if kind == "cancel" and "cancel" in hello.get("can", []):
            sessions[number].connection.interrupt()
            return ok()
        if kind == "clear":
            return own.ask(id, clear)
        if kind == "tables":
            return own.ask(id, tables)
        if kind == "bye":
            return ok()
        return error("request", "unknown request %r" % (kind,))

    for line in sys.stdin:
        id, request = None, None
        try:
            request = json.loads(line)
            id = request["id"]
            reply = handle(id, request)
        except Exception as e:
            reply = error("line", "not a request that can be answered: " + describe(e))
        if reply is not None:
            _print({"id": id, **reply})
        if id is not None and request.get("request") == "bye":
            break
    database.close()
    # A thread may still be inside the engine; it must not hold up the end.
    os._exit(0)


def refuse(message):
    """Answers hello with an error: this driver cannot do what it is asked."""
    print(message, file=sys.stderr)
    for line in sys.stdin:
        try:
            _print({"id": json.loads(line)["id"], **error("unsupported", message)})
        except (ValueError, TypeError, KeyError):
            _print({"id": None, **error("line", "not a request")})
    os._exit(1)
