"""The record of what took a device's memory, against a second account that keeps the live blocks of every moment."""
import random
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, "python")
from cosplay_cuda import allocator, origins

MIB = 1 << 20


def device(capacity):
    taken = [0]

    def take(size):
        if taken[0] + size > capacity:
            return None
        taken[0] += size
        return size

    def give(size):
        taken[0] -= size

    state = allocator.Allocator(take, give)
    local = types.SimpleNamespace(target=-3)
    activity = origins.Activity({0: state}, local, lambda: False)
    state.origins = origins.Origins(state, activity)
    return state, activity, local


def here():
    return sys._getframe(1).f_lineno


def at_random(seed):
    """The record of the fullest moment has the bytes by line of the second account's fullest moment."""
    choose = random.Random(seed)
    state, activity, local = device(300 * MIB)
    live, best = {}, (0, 0, {})
    for step in range(600):
        if choose.random() < 0.02:
            activity.turn(choose.choice(activity.STAGES))
        local.target = choose.choice((-3, 0))
        if live and choose.random() < 0.45:
            state.release(live.pop(choose.choice(list(live)))[0])
        size = choose.choice((choose.randint(1, 4000), choose.randint(1, 30 * MIB)))
        try:
            if choose.random() < 0.5:
                block, line = state.allocate(size), here()
            else:
                block, line = state.allocate(size), here()
        except allocator.OutOfMemory:
            state.origins.failed(size, 0, 7)
            record = state.origins.error
            assert (record["requested"], record["used"]) == (size, 7) and sum(record["kinds"].values()) == state.counts().allocated_bytes.now, record
            assert record["at"][2] == "state.origins.failed(size, 0, 7)", record["at"]
            continue
        live[step] = block, line, block.kind
        counts = state.all
        now = counts.reserved_bytes.now, counts.allocated_bytes.now
        if now > best[:2]:
            lines = {}
            for held, line, kind in live.values():
                lines[line, kind] = lines.get((line, kind), 0) + held.size
            best = now + (lines,)
    record = state.origins.peak()
    assert (record["reserved"], record["allocated"]) == best[:2], (record, best)
    assert {(line, kind): size for _, line, _, kind, size in record["lines"]} == best[2], (record["lines"], best[2])
    assert sum(record["kinds"].values()) == record["allocated"]


def stages():
    """Each stage has its own peak, and a range the peak of all that runs within it."""
    state, activity, local = device(300 * MIB)
    kept = state.allocate(10 * MIB)
    activity.turn(activity.FORWARD)
    activity.begin("step")
    out = state.allocate(20 * MIB)
    before = activity.turn(activity.BACKWARD)
    gradient = state.allocate(30 * MIB)
    assert [block.kind for block in (kept, out, gradient)] == [origins.ACTIVATIONS, origins.ACTIVATIONS, origins.GRADIENTS]
    state.release(gradient)
    activity.turn(before)
    activity.end()
    state.release(out)
    activity.turn(activity.STEP)
    state.allocate(2 * MIB)
    peaks = state.origins.peaks()
    assert {name: size // MIB for name, size in peaks["stages"].items()} == {"load": 10, "forward": 30, "backward": 60, "step": 12}, peaks
    assert peaks["ranges"] == {"step": 60 * MIB}, peaks


def whose():
    for name, kind in (("/home/ada/train.py", origins.OWN), ("<string>", origins.OWN), ("/home/ada/.venv/lib/python3.12/site-packages/torch/nn/x.py", origins.INNER),
                       ("/usr/lib/python3/dist-packages/transformers/models/x.py", origins.LIBRARY), (origins.__file__, origins.INNER),
                       (random.__file__, origins.INNER), ("<frozen importlib._bootstrap>", origins.INNER)):
        assert origins.whose(name) == kind, (name, origins.whose(name))


for number in range(40):
    at_random(number)
stages()
whose()
