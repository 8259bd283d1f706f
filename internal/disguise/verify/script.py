"""What Python programs of the session see of its GPU, as records for cosplay
verify. "gently" as argument: the session's own programs use the GPU, so only a
little of its memory is taken. Python 3.6 and later."""
import os
import sys

STEP = 2 << 20
MARGIN = 64 << 20
GENTLY = "gently" in sys.argv


os.environ["COSPLAY_TRIAL"] = "1"  # see driver/facade/usage.h: it makes no peak of the session's


def tell(key, value):
    sys.stdout.buffer.write(("\0%s %s\0" % (key, value)).encode("utf-8", "replace"))
    sys.stdout.flush()


def words(error):
    return "%s: %s" % (type(error).__name__, " ".join(str(error).split()))


def attempt(key, look):
    try:
        tell(key, look())
    except Exception as error:
        tell(key, words(error))


def module(name):
    try:
        return __import__(name)
    except ImportError as error:
        if getattr(error, "name", None) == name:
            tell(name + ".missing", "there is no Python module %s in the session" % name)
        else:
            tell(name + ".broken", words(error))
    except Exception as error:
        tell(name + ".broken", words(error))
    return None


def forked(torch):
    """A child that begins with CUDA after its parent has imported torch."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            torch.cuda.mem_get_info()
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(words(error))
            sys.stderr.flush()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    return "a child has the GPU" if status == 0 else "a child has no GPU: it ended with status %d" % status


def allocated(torch, size):
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    except Exception as error:
        known = getattr(torch.cuda, "OutOfMemoryError", ())
        if isinstance(error, known) or "out of memory" in str(error):
            return "out of memory"
        return words(error)
    finally:
        torch.cuda.empty_cache()
    return "granted"


def look_at_torch(torch):
    emulated = getattr(sys.modules.get("cosplay_cuda"), "by", None)  # what computes in place of the GPU, if it is prepared
    if getattr(torch.version, "cuda", None) is None and not emulated:
        tell("torch.missing", "the session's torch is built without CUDA")
        return
    if emulated:
        tell("torch.by", emulated)
    attempt("torch.fork", lambda: forked(torch))  # first: is_available starts CUDA, and a fork after that has none
    attempt("torch.gpu", torch.cuda.is_available)
    attempt("torch.name", lambda: torch.cuda.get_device_name(0))
    attempt("torch.memory", lambda: torch.cuda.mem_get_info()[1])
    attempt("torch.properties", lambda: "%s, %d" % (
        torch.cuda.get_device_properties(0).name, torch.cuda.get_device_properties(0).total_memory))
    attempt("torch.tf32", lambda: "on" if torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32 else "off")
    try:
        free, total = torch.cuda.mem_get_info()[:2]
    except Exception as error:
        tell("torch.below", words(error))
        tell("torch.above", words(error))
        return
    gently = GENTLY or emulated  # the machine may have less memory than the target
    attempt("torch.above", lambda: allocated(torch, (total if gently else free) + STEP))
    attempt("torch.below", lambda: allocated(torch, free // 16 if gently else max(free - MARGIN, STEP)))


def look_at_pynvml(pynvml):
    try:
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
    except Exception as error:
        tell("pynvml.broken", words(error))
        return

    def name():
        name = pynvml.nvmlDeviceGetName(device)
        return name.decode() if isinstance(name, bytes) else name

    attempt("pynvml.name", name)
    attempt("pynvml.memory", lambda: pynvml.nvmlDeviceGetMemoryInfo(device).total)


tell("python.version", "%d.%d.%d" % sys.version_info[:3])
# By the finder: the module of that name is the system's own where there is one.
tell("python.part", next((finder.cosplay_part for finder in sys.meta_path if hasattr(finder, "cosplay_part")), ""))
for name, look in (("torch", look_at_torch), ("pynvml", look_at_pynvml)):
    found = module(name)
    if found is not None:
        look(found)
