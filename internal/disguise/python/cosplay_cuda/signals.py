"""Python's signal handlers and finalizers run between any two steps of Python code, also of this package's. A handler waits
until an operation has ended; then it, and finalizers, run as if they were called from outside of it."""
import _thread
import collections
import contextlib
import functools
import gc
import os
import signal
import threading
import time

from .storages import UNSET, Tag

AGAIN = 0.001  # seconds until a signal is sent again that no exception could leave


class Hold:
    """While its count is above 0 no handler runs in the thread. Handlers run in the main thread, so the other threads share one that nothing reads."""

    __slots__ = ("count", "postponed", "deliver")

    def __init__(self):
        self.count, self.postponed = 0, collections.deque()

    def run(self):
        """Runs the handlers that waited. Each may raise, and so end the operation that they waited for."""
        while self.postponed and not self.count:
            self.deliver(*self.postponed.popleft())


main, others = Hold(), Hold()  # no handler waits for the others
MAIN = threading.main_thread().ident
start_thread = _thread.start_new_thread  # without a mode


def of_thread():
    return main if _thread.get_ident() == MAIN else others


def forked():
    """The thread that forks is the main thread of the child."""
    global MAIN
    MAIN, main.count = _thread.get_ident(), 0
    main.postponed.clear()


class Lock:
    """A lock that its thread may take again. No handler runs while it is taken: some versions of Python can be interrupted
    between taking a lock and entering its block."""

    __slots__ = ("lock", "hold")

    def __init__(self):
        self.lock = threading.RLock()

    def __enter__(self):
        hold = of_thread()
        hold.count += 1
        self.lock.acquire()
        self.hold = hold

    def __exit__(self, *error):
        hold = self.hold
        self.lock.release()
        hold.count -= 1
        if hold.postponed and not hold.count:
            hold.run()


class Handler(object):
    """What Python gets in place of a program's handler."""

    __slots__ = ("handler",)

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, number, frame):
        if main.count:
            if not any(waiting[1] == number for waiting in main.postponed):
                main.postponed.append((self.handler, number, frame))
        elif silent(frame):
            start_thread(again, (number,))
        else:
            main.deliver(self.handler, number, frame)


def silent(frame):
    """Whether Python would only print an exception that a handler raises here."""
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code in SILENT:
            return True
        frame = frame.f_back
    return False


def again(number):
    time.sleep(AGAIN)
    signal.pthread_kill(MAIN, number)


SILENT = {Tag.__del__.__code__}


def install(torch, mode, counters):
    local = mode.local
    depth, at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
    stack_mode = getattr(torch.utils._python_dispatch, "_TorchDispatchStackMode", None)  # PyTorch 1.13 runs the others by this one
    force = getattr(torch._C, "_ForceDispatchKeyGuard", None)
    if force is not None:
        keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()

    excluded, exclude = torch._C._dispatch_tls_is_dispatch_key_excluded, torch._C._dispatch_tls_set_dispatch_key_excluded
    python = torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot  # excluded where the mode is off

    def active():
        return any(isinstance(at(number), mode) for number in range(depth()))

    def sees():
        """Whether the mode gets the operations of the thread."""
        return active() and not excluded(python[0])

    def hide(on):
        for key in python:
            exclude(key, on)

    @contextlib.contextmanager
    def outside():
        """As outside of an operation: with the mode, and with no device named."""
        target, ambient, current = local.target, local.ambient, local.mode
        special = current and current.special
        local.target = local.ambient = UNSET
        if special is not None:
            current.special = None
        with contextlib.ExitStack() as stack:
            if not active():
                if force is not None:
                    stack.enter_context(force(*keys))  # an operation runs below autograd
                entered = mode()
                stack.callback(counters.leave, entered.tally)
                stack.enter_context(entered)
            elif excluded(python[0]):
                hide(False)
                stack.callback(hide, True)
            elif stack_mode is not None:
                torch._C._set_torch_dispatch_mode(stack_mode())  # which it is not between the call of that mode and its first line
            try:
                yield
            finally:
                local.target, local.ambient, local.mode = target, ambient, current
                if special is not None:
                    current.special = special

    def deliver(handler, number, frame):
        with outside():
            handler(number, frame)

    main.deliver = deliver
    os.register_at_fork(after_in_child=forked)
    handlers()
    finalizers(sees, outside)
    if stack_mode is not None:
        stacked(torch.utils._python_dispatch)


def handlers():
    set_signal, get_signal = signal.signal, signal.getsignal

    def own(handler):
        return handler.handler if isinstance(handler, Handler) else handler

    @functools.wraps(set_signal)
    def set_handler(signalnum, handler):
        return own(set_signal(signalnum, Handler(handler) if callable(handler) else handler))

    @functools.wraps(get_signal)
    def get_handler(signalnum):
        return own(get_signal(signalnum))

    if _thread.get_ident() == MAIN:
        for number in range(1, signal.NSIG):  # Python 3.7 cannot list the valid ones
            handler = get_signal(number)
            if callable(handler):
                set_signal(number, Handler(handler))
    signal.signal, signal.getsignal = set_handler, get_handler


def finalizers(sees, outside):
    """Objects that die in a cycle are finalized within whatever runs when Python collects them."""
    entered = threading.local()

    def collected(phase, info):
        if phase == "start" and not sees():
            entered.block = outside()
            entered.block.__enter__()
        elif phase == "stop":
            block, entered.block = getattr(entered, "block", None), None
            if block is not None:
                block.__exit__(None, None, None)

    SILENT.add(collected.__code__)
    gc.callbacks.append(collected)


def stacked(module):
    """PyTorch 1.13 takes a mode from its stack, and restores it, in Python code that an exception of a handler would leave in between."""
    depth, pop, push, below = (module._len_torch_dispatch_stack, module._pop_torch_dispatch_stack, module._push_on_torch_dispatch_stack,
                               module._set_torch_dispatch_mode)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        hold = of_thread()
        hold.count += 1
        try:
            mode = pop()
            try:
                below(self if depth() else None)
                return mode.__torch_dispatch__(func, types, args, kwargs)
            finally:
                push(mode)
                below(self)
        finally:
            hold.count -= 1
            if hold.postponed and not hold.count:
                hold.run()

    module._TorchDispatchStackMode.__torch_dispatch__ = __torch_dispatch__
