"""PyTorch's CUDA in a session whose host has no GPU: the CPU computes, tensors say and behave as if they were on the
session's devices, and their memory is booked in the session's account."""
import _thread
import functools
import os
import sys
import threading

from . import attention, booking, booleans, builds, counting, determinism, devices, driver, dropout, encoder, errors, extras, fused, graphs, halves
from . import higher, history, locations, masks, memory, native, norms, numbers, programs, progress, recurrent, refused, report, rms, script, shapes
from . import signals, softmax, stages, storages, streams, temporaries, tensors, traces, undo, values, versions, workspaces


FIRST, LAST = (1, 13), (2, 14)  # the versions of PyTorch that are tested
by = None  # what computes in place of the GPU: "CPU", or "shapes" where nothing does


def install(torch, session):
    """Prepares PyTorch, and returns whether it did. A PyTorch that it cannot prepare finds no GPU, and a line says why."""
    try:
        builds.hide_devices(torch)
        if errors.version(torch) < FIRST:
            why = "which is older than %d.%d" % FIRST
        else:
            with undo.Undo(torch):
                prepare(torch, session)
            return True
    except Exception as error:
        why = "%s: %s" % (type(error).__name__, (str(error).splitlines() or [""])[0])
    builds.without_devices(torch)
    if sys.stderr is not None:
        sys.stderr.write("cosplay: PyTorch %s finds no GPU in this session: its host has none, and cosplay cannot prepare this version (%s). Fix: install "
                         "PyTorch %d.%d to %d.%d, or run the program on a host with a GPU.\n" % ((getattr(torch, "__version__", "?"), why) + FIRST + LAST))
    return False


def prepare(torch, session):
    global by
    tags = storages.choose(torch, errors.version(torch))
    connection = driver.Driver()
    account = memory.Memory(torch, connection, tags, streams.stream_of, booking.Local())
    capability = functools.partial(capability_of, session, connection)
    counters = counting.Counters(torch._C._get_tracing_state)
    without_values = shapes.Shapes(torch, tags) if session["compute"] == "shapes" else None
    products = workspaces.Workspaces(torch, account, capability)
    sms = functools.partial(sms_of, session, connection)
    attentions = attention.Attention(torch, tags, account, capability, sms)
    encoders = encoder.Encoder(torch, account, attentions, products)
    kernels = temporaries.Temporaries(torch, account, sms, capability, without_values)
    low = halves.Halves(torch)
    rules = booking.Rules(
        check=both(functools.partial(refused.check_of, torch, capability), functools.partial(determinism.check_of, torch)),
        count=lambda func: counting.counter_of(func, counters, torch), as_gpu=lambda func: low.rule(func) or masks.rule(torch, func) or softmax.rule(torch, func),
        beside=lambda func: products.rule_of(func) or attentions.rule_of(func) or encoders.rule_of(func) or kernels.rule_of(func), call=booleans.calls(torch))
    mode = booking.make(torch, tags, account, counters, rules, low, without_values)
    places = devices.Devices(torch, mode, tags, counters, account)
    numbers.install(torch)
    versions.install(torch, connection)
    native.install(torch, connection, account, capability, session, products)
    places.graphs = graphs.install(torch, mode, tags, account, low, rules, without_values is None)
    history.install(torch, account, places.graphs)
    norms.install(torch)
    fused.install(torch)
    places.install()
    progress.install(torch, places, account, counters, places.graphs)
    tensors.install(torch, places, account)
    recurrent.Networks(torch, places, account, products, mode, without_values, lambda: sms() * kernels.reductions.threads()).install()
    programs.install(torch, places, mode, session, capability)
    stages.install(torch, places, account, counters)
    script.install(torch, places)
    traces.install(torch, places)
    higher.install(torch, mode, places)
    dropout.install(torch, mode, places)
    softmax.install(torch, mode, places)
    attentions.install(mode, places)
    rms.install(torch, attentions)
    refused.install(torch)
    extras.install(torch, places)
    if without_values:
        values.install(torch, without_values, places)
    memory.keep_freed()
    trial = mode()
    with trial:
        torch.ones(1).add(1)  # fails here if this version calls a mode in another way
    counters.leave(trial.tally)
    if "COSPLAY_TRIAL" not in os.environ:  # cosplay verify is no program of the session
        report.start(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "report"), counters, account)
    signals.install(torch, mode, counters)
    locations.install(torch)
    in_every_thread(mode, counters)  # last, since nothing takes a thread out of the mode
    by = "shapes" if without_values else "CPU"


def both(*checks_of):
    """The checks of an operation as one; None if it has none."""
    def of(func):
        checks = [check for check in (check_of(func) for check_of in checks_of) if check is not None]
        if len(checks) < 2:
            return checks[0] if checks else None

        def check_all(args):
            for check in checks:
                check(args)

        return check_all

    return of


def capability_of(session, connection):
    """(7, 5): the target's, or that of the driver in a session with capability = "real"."""
    if "capability" in session:
        return tuple(int(part) for part in session["capability"].split("."))
    return connection.capability(0)


def sms_of(session, connection):
    """The number of multiprocessors, likewise."""
    return session.get("sms") or connection.attribute(driver.SM_COUNT, 0)


def in_every_thread(mode, counters):
    """PyTorch's modes belong to a thread, so each thread that a program starts enters it."""
    run = threading.Thread._bootstrap_inner

    def bootstrap(self):
        entered = mode()
        with entered:
            run(self)
        counters.leave(entered.tally)

    def start_new_thread(function, args, kwargs={}):
        def within(*args, **kwargs):
            entered = mode()
            try:
                with entered:
                    function(*args, **kwargs)
            finally:
                counters.leave(entered.tally)

        return start(within, args, kwargs)

    start = _thread.start_new_thread
    threading.Thread._bootstrap_inner = bootstrap
    _thread.start_new_thread = _thread.start_new = functools.wraps(start)(start_new_thread)
    kept.append(mode())
    kept[0].__enter__()


kept = []  # the main thread's mode: some versions of PyTorch hold no reference to it
