

def text(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "x'%s'" % bytes(value).hex()
    if isinstance(value, float):
        return repr(value).replace("e+", "e").replace("e-0", "e-")
    if isinstance(value, int):
        return str(value)
    if type(value).__name__ == "Decimal":
        return format(value, "f")
    return "'%s'" % str(value).replace("'", "''")


def attempt(connection, sql):
    try:
        came = execute(connection, sql)
    except Exception as e:
        return Failed(getattr(e, "sqlite_errorname", type(e).__name__), str(e))
    if isinstance(came, list):
        return ["(%s)" % ", ".join(map(text, row)) for row in came]
    return came


def same(recorded, came):
    if isinstance(recorded, Failed) or isinstance(came, Failed):
        return isinstance(recorded, Failed) and isinstance(came, Failed)
    if recorded == OK:
        return True
    if isinstance(recorded, list) and isinstance(came, list):
        return sorted(recorded) == sorted(came)
    return recorded == came


def shown(outcome):
    if isinstance(outcome, list):
        return " ".join(outcome) or "no rows"
    return str(outcome)


def report(label, sql, recorded, came, instead):
    """Prints a line; gives whether it went as it was recorded."""
    print("%-8s %s\n         -> %s" % (label, sql, shown(came)))
    if not same(recorded, came):
        print("         recorded: %s" % shown(recorded))
    if instead is not None:
        print("         expected: %s" % instead)
    return same(recorded, came)


def main():
    folder = tempfile.mkdtemp(prefix="repro-")
    try:
        root = start(os.path.join(folder, "db"))
        for sql in SETUP:
            execute(root, sql)
        sessions = {name: connect(root, name) for name in dict.fromkeys(s[0] for s in STEPS)}
        as_recorded, marked, early = [], [], {}
        for session, label, sql, recorded, instead in STEPS:
            if recorded == WAITS:
                came = attempt(sessions[session], sql)
                if isinstance(came, Failed) and came.is_busy():
                    print("%-8s %s\n         -> busy: tried again below" % (label, sql))
                else:  # it does not wait this time
                    early[label] = came
                continue
            came = early.pop(label) if label in early else attempt(sessions[session], sql)
            fits = report(label, sql, recorded, came, instead)
            as_recorded.append(fits)
            if instead is not None:
                marked.append(fits)
        for query, recorded, instead in FINAL:
            fits = report("finally", query, recorded, attempt(root, query), instead)
            as_recorded.append(fits)
            if instead is not None:
                marked.append(fits)
        shows = all(marked or as_recorded)
        print("The deviation shows." if shows else "The deviation does not show here.")
        return 1 if shows else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        code = main()
    except Exception:  # neither shown nor not: it could not be tried
        traceback.print_exc()
        code = 2
    sys.exit(code)
