

WAITS, OK = "waits", "ok"


class Failed:
    def __init__(self, name, message=""):
        self.name, self.message = name, message

    def is_busy(self):
        return "locked" in self.message or "busy" in self.message.lower()

    def __str__(self):
        return "error %s %s" % (self.name, self.message)
