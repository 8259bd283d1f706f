"""Writes what the program does on its devices to the session's report, from which cosplay reads it.

The report is a file of SLOTS + 1 slots of SLOT bytes. Slot 0 has the sums of the programs whose slots were used again,
each other slot has one program. A slot is the CRC-32 of a text in hex, a space, the text, which is JSON, and spaces up to
its end. A slot is written in one piece by a process that holds the file's lock, and one whose sum is wrong is empty, so a
process that is killed while it writes damages nothing."""
import atexit
import fcntl
import json
import os
import sys
import time
import zlib

from . import errors

SLOT = 4096  # bytes
SLOTS = 32
VERSION = 1
EVERY = 1.0  # s between two writes of a program that computes
PATIENCE = 2.0  # s that a program which ends waits for the lock
SHOWN = "COSPLAY_REPORT"  # the variable by which a user asks for a summary at the end of each program
RECORDS = "memory", "error"  # of the program's lines
COUNTS = ("launches", "flops", "to_device", "to_host", "between")


class Report:
    def __init__(self, path, counters, memory):
        self.path, self.counters, self.memory = path, counters, memory
        self.begin()
        counters.progress = self.progress
        os.register_at_fork(after_in_child=self.forked)
        atexit.register(self.close)

    def begin(self):
        self.id, self.slot, self.closed = os.urandom(8).hex(), None, False
        self.known = None, None, None  # what was last read of the fullest moment
        self.started, self.due = time.time(), time.monotonic() + EVERY

    def forked(self):
        """A forked child is another program, with its own counts."""
        self.counters.forget()
        self.memory.refused = 0
        self.begin()

    def in_child(self):
        """multiprocessing ends a process without atexit."""
        from multiprocessing import util

        util.Finalize(None, self.close, exitpriority=-1000)

    def progress(self):
        now = time.monotonic()
        if now >= self.due:
            self.due = now + EVERY
            self.write(self.entry(), 0)

    def close(self):
        """Writes the last figures of a program that used a device."""
        if self.closed or not self.memory.allocators:
            return
        self.closed = True
        entry = self.entry()
        entry["end"] = round(time.time(), 3)
        error = cause()
        if error is not None:
            entry["failed"] = [type(error).__name__[:64], str(error)[:640]]
        self.write(entry, PATIENCE)
        if os.environ.get(SHOWN, "0") not in ("", "0"):
            sys.stderr.write(summary(entry))

    def entry(self):
        counters = self.counters
        entry = {"v": VERSION, "id": self.id, "pid": os.getpid(), "name": name(), "start": round(self.started, 3), "at": round(time.time(), 3)}
        for count in COUNTS:
            entry[count] = counters.total(count) if count in ("launches", "flops") else getattr(counters, count)
        entry["collectives"] = {kind: list(counts) for kind, counts in list(counters.collectives.items())}
        entry["devices"] = {str(index): state.peaks() for index, state in list(self.memory.allocators.items())}
        if self.memory.refused:
            entry["out_of_memory"] = [self.memory.refused, self.memory.refusal[:640]]
        if counters.rank is not None:
            entry["rank"] = counters.rank
        if errors.without_values:
            entry["without_values"] = errors.without_values[0][:64]
        entry["least"] = counters.whole().least
        if counters.step is not None:
            work, sent = counters.step
            entry["step"] = {"count": counters.steps, "flops": work.flops, "least": work.least, "to_device": sent}
        self.add_origins(entry)
        return entry

    def add_origins(self, entry):
        """Adds what took the memory: of the device that was fullest, and of the one that last had an error."""
        records = [(index, state.origins) for index, state in sorted(self.memory.allocators.items())]
        entry["rescued"] = sum(record.rescued for _, record in records)
        index, fullest = max(records, key=lambda found: found[1].reserved)
        entry["memory"] = dict(self.fullest(fullest), device=index)
        failed = [(record.error["number"], index, record.error) for index, record in records if record.error]
        if failed:
            _, index, error = max(failed, key=lambda found: found[0])
            entry["error"] = dict(error, device=index)

    def fullest(self, record):
        """The record of the fullest moment, which is made once for each such moment, and of the stages, which change."""
        if self.known[:2] != (record, record.moment):
            self.known = record, record.moment, record.peak()
        return dict(self.known[2], **record.peaks())

    def write(self, entry, patience):
        """Without the file, the lock or space on the disk the program goes on without a report."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            if locked(fd, patience):
                place = self.place(fd)
                if place is not None:
                    os.pwrite(fd, encode(entry), place * SLOT)
        except (OSError, ValueError, TypeError):
            pass
        finally:
            os.close(fd)

    def place(self, fd):
        """The program's slot; None if other programs have taken it."""
        if self.slot is not None:
            now = decode(os.pread(fd, SLOT, self.slot * SLOT))
            return self.slot if now and now.get("id") == self.id else None
        slots = [decode(os.pread(fd, SLOT, number * SLOT)) for number in range(SLOTS + 1)]
        sums = slots[0] or {}
        free = [number for number in range(1, SLOTS + 1) if not slots[number] or slots[number].get("id") == sums.get("id")]
        if free:
            self.slot = free[0]
        else:
            # The program that ended first leaves; if none has ended, the one that has not computed for longest.
            self.slot = min(range(1, SLOTS + 1), key=lambda n: ("end" not in slots[n], slots[n]["at"]))
            os.pwrite(fd, encode(added(sums, slots[self.slot])), 0)
        return self.slot


def locked(fd, patience):
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= until:
                return False
        time.sleep(0.01)


def encode(entry):
    text = fitting(entry)
    return (b"%08x %s" % (zlib.crc32(text), text)).ljust(SLOT)


def fitting(entry):
    """The text of an entry, with as many of the program's lines as there is room for."""
    records = [dict(entry[name]) for name in RECORDS if name in entry]
    for record in records:
        record["lines"] = list(record["lines"])
    entry = dict(entry, **dict(zip([name for name in RECORDS if name in entry], records)))
    while True:
        text = json.dumps(entry, default=int, separators=(",", ":")).encode("ascii")
        if len(text) + 9 <= SLOT:
            return text
        longest = max((record["lines"] for record in records), key=len, default=())
        if not longest:
            raise ValueError("the entry is too long")
        longest.pop()


def decode(slot):
    """The entry of a slot; None of an empty or a damaged one."""
    text = slot[9:].rstrip(b" ")
    try:
        if int(slot[:8], 16) == zlib.crc32(text):
            return json.loads(text.decode("ascii"))
    except ValueError:
        pass
    return None


def added(sums, entry):
    """The sums with an entry that leaves. They name it, so that it is not counted twice if the process is killed now."""
    result = {"v": VERSION, "id": entry["id"], "programs": sums.get("programs", 0) + 1}
    for count in COUNTS:
        result[count] = sums.get(count, 0) + entry[count]
    result["collectives"] = both = {kind: list(counts) for kind, counts in sums.get("collectives", {}).items()}
    for kind, counts in entry["collectives"].items():
        before = both.setdefault(kind, [0, 0])
        both[kind] = [before[0] + counts[0], before[1] + counts[1]]
    return result


def name():
    """The program, as users know it."""
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if script in ("", "-c", "-"):
        return "python"
    folder, last = os.path.split(script)
    text = os.path.basename(folder) if last == "__main__.py" and folder else last
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:64]


def cause():
    """The exception that ends the program, or this process of multiprocessing; None if none does."""
    error = sys.exc_info()[1]
    if error is None and not hasattr(sys, "ps1"):
        error = getattr(sys, "last_value", None)
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return None
        return error.__context__ or error
    return error


def summary(entry):
    parts = ["peak of cuda:%s %s" % (index, errors.size(peak[1])) for index, peak in sorted(entry["devices"].items())]
    parts += ["%d launches" % entry["launches"], "%.3g floating point operations" % entry["flops"]]
    parts += ["%s %s" % (errors.size(entry[count]), where) for count, where in
              (("to_device", "to the GPU"), ("to_host", "to the host"), ("between", "between GPUs"))]
    parts += ["%d %s (%s)" % (count, kind, errors.size(size)) for kind, (count, size) in sorted(entry["collectives"].items())]
    return "cosplay: %s (pid %d): %s\n" % (entry["name"], entry["pid"], ", ".join(parts))


def start(path, counters, memory):
    report = Report(path, counters, memory)
    from multiprocessing import util

    util.register_after_fork(report, Report.in_child)
    return report
