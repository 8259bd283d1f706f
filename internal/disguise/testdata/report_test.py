"""Writes the reports of programs that end, of one that runs, and one whose writer is killed between two writes."""
import fcntl
import os
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, "python")
from cosplay_cuda import allocator, counting, origins, report

path, programs = sys.argv[1], int(sys.argv[2])


def program(launches, number):
    counters = counting.Counters()
    counters.join().launches = launches
    counters.join().flops = 10 ** 15
    counters.moved(-1, 0, 1000)
    counters.collective("all_reduce", 8)
    state = allocator.Allocator(lambda size: size, lambda size: None)
    state.origins = origins.Origins(state, origins.Activity({0: state}, types.SimpleNamespace(target=-3), lambda: False))
    state.allocate(512)
    memory = types.SimpleNamespace(allocators={0: state}, refused=0, refusal="")
    one = report.Report(path, counters, memory)
    one.started = 1000.0 + number
    return one


running = program(1, 0)
running.write(running.entry(), 0)
assert running.slot == 1, running.slot


class Whole:  # as a tensor of one element
    def __int__(self):
        return 7


assert report.decode(report.encode({"flops": Whole()})) == {"flops": 7}

# A slot has as many of the program's lines as there is room for.
lines = [["x" * 60, number, "y" * 60, "inputs", 1] for number in range(32)]
entry = report.decode(report.encode({"memory": {"lines": lines}, "error": {"lines": lines[:3]}}))
assert 15 < len(entry["memory"]["lines"]) < 32 and entry["error"]["lines"] == lines[:3] and len(lines) == 32, entry
for number in range(1, programs):
    program(1, number).close()

# The figures of a program are replaced in its slot.
running.counters.join().launches = 4
running.write(running.entry(), 0)

# A program is killed after the sums have the entry that leaves, and before its own is written.
killed, write = program(1, programs), os.pwrite
os.pwrite = lambda fd, data, at: write(fd, data, at) if at == 0 else (_ for _ in ()).throw(OSError("killed"))
killed.write(killed.entry(), 0)
os.pwrite = write

# Another process holds the lock: the program gives up after a while.
with open(path, "r+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    report.PATIENCE = 0.2
    program(1000, programs + 1).close()
os._exit(0)
