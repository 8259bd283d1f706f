"""Where a warning is from. Python states the code that runs the operation, which is the session's; on a GPU it is the line of the
program, or of PyTorch's Python code."""
import os
import sys
import warnings


def install(torch):
    folder = os.path.dirname(move.__code__.co_filename)
    operators = torch._ops.__file__
    show = warnings._showwarnmsg

    def ours(frame):
        name = frame.f_code.co_filename
        return os.path.dirname(name) == folder or name == operators and frame.f_back is not None and ours(frame.f_back)

    def show_at_program(message):
        start = frame = sys._getframe(1)
        while frame is not None and ours(frame):
            frame = frame.f_back
        if frame is None or frame is start or message.filename != start.f_code.co_filename:
            return show(message)
        if move(start, frame, message):
            message.filename, message.lineno, message.line = frame.f_code.co_filename, frame.f_lineno, None
            show(message)

    warnings._showwarnmsg = show_at_program


def move(start, frame, message):
    """Python remembers by module what it has shown, unless a filter says always. Moves this to the program's module. Returns whether
    the warning is to be shown."""
    known, key = start.f_globals.get("__warningregistry__", {}), (str(message.message), message.category)
    if known.pop(key + (message.lineno,), None) is None:
        return True
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    if registry.get("version") != known.get("version"):  # the filters have changed
        registry.clear()
        registry["version"] = known.get("version")
    new = key + (frame.f_lineno,) not in registry
    registry[key + (frame.f_lineno,)] = True
    return new
