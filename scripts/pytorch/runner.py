"""Runs the tests of one of PyTorch's test files one by one, and writes what becomes of each to a file, so that a test that
hangs or ends the interpreter does not take the others with it:

    runner.py TEST_FILE RESULTS LIMIT [NAME...]

RESULTS gets a line for each test that starts, "> NAME", and one when it has ended: "OUTCOME SECONDS NAME MESSAGE". Tests that it
has already are left out. With NAMES only these run. LIMIT is in seconds of a processor, so that other load does not matter. A test
that takes longer can leave threads behind, so the interpreter ends with exit code 75: run it again for the remaining tests."""
import faulthandler
import gc
import importlib
import itertools
import os
import signal
import sys
import time
import unittest

WAITING = 5  # times the limit that a test may take with waiting
AGAIN = 75  # exit code
SHOWN = 360  # characters of a message: the error of another process is at its end
HARD = 15  # seconds after the limits until a test that cannot be interrupted ends the interpreter


class TookTooLong(BaseException):
    pass


def tests_of(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests_of(part)
        else:
            yield part


def name_of(test):
    return "%s.%s" % (type(test).__name__, test._testMethodName)


class Outcome(unittest.TestResult):
    """What becomes of one test."""

    def __init__(self):
        unittest.TestResult.__init__(self)
        self.outcome, self.message = "passed", ""

    def note(self, outcome, message):
        if self.outcome != "failed":
            text = " ".join(str(message).split()).partition("To execute this test, run")[0]
            self.outcome, self.message = outcome, text if len(text) <= SHOWN else text[:SHOWN // 3] + " ... " + text[-SHOWN * 2 // 3:]

    def addError(self, test, error):
        self.note("failed", "%s: %s" % (error[0].__name__, error[1]))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(test, error)

    def addSkip(self, test, reason):
        self.note("skipped", reason)

    def addExpectedFailure(self, test, error):
        pass

    def addUnexpectedSuccess(self, test):
        self.note("failed", "it passes, and PyTorch expects a failure")

    def stop(self):  # PyTorch stops after an error that it takes for a broken device
        pass


def run(test, limit):
    def late(number, frame):
        raise TookTooLong("after %d s of a processor" % (time.process_time() - used))

    outcome, started, used = Outcome(), time.monotonic(), time.process_time()
    for each in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(each, late)
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit + HARD)  # its signal ends the interpreter
    signal.alarm(WAITING * limit)
    faulthandler.dump_traceback_later(WAITING * limit + HARD, exit=True)
    try:
        test(outcome)
    except BaseException as error:  # what unittest does not catch
        outcome.note("failed", "%s: %s" % (type(error).__name__, error))
    finally:
        for each in (signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
            signal.setitimer(each, 0)
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
    return outcome, time.monotonic() - started


def main(path, results, limit, *names):
    folder, file = os.path.split(os.path.abspath(path))
    sys.path[:0] = [folder, os.path.dirname(folder)]
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins"))
    with open(results + ".log", "w") as log:  # what the tests print
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    # Unlike PyTorch's own runner it reads no arguments; the module's code must not see these.
    sys.argv = [path]
    known = set()
    if os.path.exists(results):
        with open(results) as lines:
            known = {line.split()[2] for line in lines if not line.startswith(">")}
    module = importlib.import_module(os.path.splitext(file)[0])
    tests = {name_of(test): test for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))}
    chosen = [name for name in sorted(tests) if name not in known and (not names or name in names)]
    with open(results, "a", buffering=1) as lines:
        for kind, group in itertools.groupby(chosen, key=lambda name: type(tests[name])):
            kind.setUpClass()
            for name in group:
                lines.write("> %s\n" % name)
                outcome, seconds = run(tests.pop(name), int(limit))
                lines.write("%s %.2f %s %s\n" % (outcome.outcome, seconds, name, outcome.message))
                if outcome.message.startswith(TookTooLong.__name__):
                    os._exit(AGAIN)
                del outcome
            gc.collect()
            kind.tearDownClass()
    sys.stdout.flush()
    os._exit(0)  # what tests leave, such as threads, must not keep the interpreter


if __name__ == "__main__":
    main(*sys.argv[1:])
