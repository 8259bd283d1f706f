"""What took the memory of a device: the kind of each block, and the line of the program that allocated it, at the moment at which the device
was fullest and at the last error. PyTorch is not needed here."""
import itertools
import linecache
import os
import sys
import sysconfig

PARAMETERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, INPUTS, WORKSPACES = KINDS = (
    "parameters", "gradients", "optimizer_state", "activations", "inputs", "workspaces")
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARIES = tuple({path + os.sep for path in (sysconfig.get_paths().get(name) for name in ("stdlib", "platstdlib")) if path})
INSTALLED = os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep
TORCH = tuple(part + "torch" + os.sep for part in INSTALLED)
OWN, LIBRARY, INNER = range(3)  # the program's own code; that of a library; that of PyTorch, Python and this package
LINES = 32  # of the program in a record
RANGES = 8  # of the program in a record
SHOWN = 64  # characters of a path, and of a line of code
NOWHERE = "", 0
errors = itertools.count()
known = {}  # OWN, LIBRARY or INNER, by the name of a file


def whose(filename):
    if filename.startswith((HERE, "<frozen")) or any(part in filename for part in TORCH):
        found = INNER
    elif any(part in filename for part in INSTALLED):
        found = LIBRARY
    else:
        found = INNER if filename.startswith(LIBRARIES) else OWN
    known[filename] = found
    return found


def where(depth):
    """The line of the program's own code that runs, as (file, line), or of a library's if there is none."""
    frame, library = sys._getframe(depth), None
    while frame is not None:
        filename = frame.f_code.co_filename
        kind = known.get(filename)
        if kind is None:
            kind = whose(filename)
        if kind == OWN:
            return filename, frame.f_lineno
        if kind == LIBRARY and library is None:
            library = filename, frame.f_lineno
        frame = frame.f_back
    return library or NOWHERE


class Activity:
    """What the program does: its stage, the part of a training step that new memory is for."""

    LOAD, FORWARD, BACKWARD, STEP = STAGES = "load", "forward", "backward", "step"

    def __init__(self, allocators, targets, recomputes):
        self.allocators = allocators
        self.targets = targets  # its target is the device of a call that makes or copies a tensor for it, or below 0
        self.recomputes = recomputes  # whether a backward pass computes what a checkpoint did not keep
        self.stage = self.LOAD
        self.ranges = []  # the program's names for what runs, each with the peaks of the devices

    def records(self):
        return [state.origins for state in list(self.allocators.values()) if state.origins is not None]

    def turn(self, stage):
        """Begins a stage, and returns the one to return to after it: what follows a part of a training step no longer loads."""
        before, self.stage = self.stage, stage
        for record in self.records():
            record.turn(before, self.ranges)
        return self.FORWARD if before == self.LOAD else before

    def begin(self, name):
        self.turn(self.stage)
        self.ranges.append((name, {}))

    def end(self):
        self.turn(self.stage)
        if self.ranges:
            name, peaks = self.ranges.pop()
            for record in self.records():
                record.named[name] = max(record.named.get(name, 0), peaks.get(record, 0))

    def kind(self):
        if self.stage == self.STEP:
            return OPTIMIZER
        if self.targets.target >= 0:
            return INPUTS
        return GRADIENTS if self.stage == self.BACKWARD and not self.recomputes() else ACTIVATIONS


class Origins:
    """The record of one device. At its fullest moment most memory is reserved, and of that most is allocated. The blocks that were live then
    are those that still live, and those that were released since. A block that was released before is of no interest, so that the record
    takes as much as the live blocks do."""

    def __init__(self, state, activity):
        self.state, self.activity = state, activity
        self.clock = self.moment = self.reserved = self.allocated = 0
        self.released = []  # (kind, place, size) of blocks that were live at the fullest moment
        self.high, self.stages, self.named = 0, {}, {}  # the peak of this stage; of all stages; of the program's ranges
        self.error = None  # the record of the last request that could not be served
        self.rescued = 0  # how many requests could be served only after the allocator had returned its cache
        self.small, self.large = state.small, state.large
        self.history = None  # records each event, while the program wants that

    def born(self, block):
        self.clock += 1
        block.born, block.place, block.kind = self.clock, where(3), self.activity.kind()
        allocated = self.small.allocated_bytes.now + self.large.allocated_bytes.now
        reserved = self.small.reserved_bytes.now + self.large.reserved_bytes.now
        if allocated > self.high:
            self.high = allocated
        if reserved >= self.reserved and (reserved > self.reserved or allocated > self.allocated):
            self.reserved, self.allocated, self.moment = reserved, allocated, self.clock
            if self.released:
                self.released = []
        if self.history is not None:
            self.history.born(block)

    def died(self, block):
        if block.born <= self.moment:
            self.released.append((block.kind, block.place, block.size))
        if self.history is not None:
            self.history.died(block)

    def grew(self, segment):
        if self.history is not None:
            self.history.grew(segment)

    def gave(self, segment):
        if self.history is not None:
            self.history.gave(segment)

    def failed(self, requested, stream, used):
        """Records a request for which there is no memory. used is what all programs have of the device, with their contexts."""
        with self.state.settled():
            reserved, allocated = self.state.all.reserved_bytes.now, self.state.all.allocated_bytes.now
            self.error = summary(self.live(), reserved, allocated)
        self.error.update(number=next(errors), requested=requested, used=used, at=shown(where(2)), stage=self.activity.stage)
        if self.history is not None:
            self.history.failed(requested, stream)

    def live(self):
        for segment in self.state.segments.values():
            block = segment.first
            while block:
                if block.used:
                    yield block.kind, block.place, block.size, block.born
                block = block.after

    def turn(self, before, ranges):
        allocated = self.state.counts().allocated_bytes.now
        self.stages[before] = max(self.stages.get(before, 0), self.high)
        for _, peaks in ranges:
            peaks[self] = max(peaks.get(self, 0), self.high)
        self.high = allocated

    def peak(self):
        """The record of the fullest moment."""
        with self.state.settled():
            then = self.released + [found[:3] for found in self.live() if found[3] <= self.moment]
        return summary(then, self.reserved, self.allocated)

    def peaks(self):
        """The most bytes that were allocated in each stage, and in each of the program's ranges."""
        self.turn(self.activity.stage, self.activity.ranges)
        return {"stages": {stage: self.stages[stage] for stage in Activity.STAGES if stage in self.stages},
                "ranges": dict(sorted(self.named.items(), key=lambda named: -named[1])[:RANGES])}


def summary(blocks, reserved, allocated):
    """Bytes by kind, and the lines with most bytes."""
    kinds, lines = {}, {}
    for found in blocks:
        kind, place, size = found[:3]
        kinds[kind] = kinds.get(kind, 0) + size
        lines[place, kind] = lines.get((place, kind), 0) + size
    largest = sorted(lines.items(), key=lambda entry: (-entry[1], entry[0]))[:LINES]
    return {"reserved": reserved, "allocated": allocated, "kinds": kinds, "lines": [shown(place) + [kind, size] for (place, kind), size in largest]}


def shown(place):
    """A place as a person names it: the file below the working folder, the line, and its code."""
    filename, line = place
    if not filename:
        return ["", 0, ""]
    code = linecache.getline(filename, line).strip()
    try:
        folder = os.getcwd() + os.sep
    except OSError:
        folder = os.sep
    short = filename[len(folder):] if filename.startswith(folder) else filename
    return [short if len(short) <= SHOWN else "..." + short[-SHOWN:], line, code if len(code) <= SHOWN else code[:SHOWN] + "..."]
