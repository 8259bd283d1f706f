"""What a program sets of PyTorch's caching allocator, and how the allocator rounds the size of a request."""

MIB = 1 << 20
SMALLEST = 512  # bytes, and what every size is a multiple of
LARGE_SEGMENT = 20 * MIB  # the least value of max_split_size_mb, too
# Options that have no effect on what is booked here, and those that are not modelled; all that begin with "pinned_" are about the host.
OTHERS = frozenset((
    "backend", "large_segment_size_mb", "max_non_split_rounding_mb", "per_process_memory_fraction", "release_lock_on_hipmalloc",
    "roundup_bypass_threshold_mb"))
FLAGS = frozenset((
    "graph_capture_record_stream_reuse", "pinned_use_background_threads", "pinned_use_cuda_host_register", "release_lock_on_cudamalloc",
    "throw_on_cudamalloc_oom"))


class Invalid(RuntimeError, ValueError):
    """PyTorch raises the one before 2.9, and the other since."""


def round_up(size, to):
    return -(-size // to) * to


class Settings:
    """PYTORCH_CUDA_ALLOC_CONF: "max_split_size_mb:128,roundup_power2_divisions:4"."""

    def __init__(self, text=""):
        self.max_split = None  # bytes; larger blocks are not split
        self.divisions = []  # (from this many MiB, divisions), largest first
        self.expandable = False
        self.threshold = 0.0
        for key, value in self.pairs(text):
            if key == "max_split_size_mb":
                mib = int(value)
                if mib <= LARGE_SEGMENT // MIB:
                    raise Invalid("CachingAllocator option max_split_size_mb too small, must be > %d" % (LARGE_SEGMENT // MIB))
                self.max_split = mib * MIB
            elif key == "roundup_power2_divisions":
                self.divisions = self.steps(value)
            elif key == "expandable_segments":
                self.expandable = value.lower() == "true"
            elif key == "garbage_collection_threshold":
                self.threshold = float(value)
                if not 0 < self.threshold < 1:
                    raise Invalid("garbage_collection_threshold must be greater than 0 and less than 1, not %s" % value)
            elif key in FLAGS:
                if value not in ("True", "False"):
                    raise Invalid("Expected a single True/False argument for %s" % key)
            elif key == "pinned_num_register_threads":
                if value not in ("1", "2", "4", "8", "16", "32", "64", "128"):
                    raise Invalid("pinned_num_register_threads must be a power of 2, and at most 128, not %s" % value)
            elif key not in OTHERS and not key.startswith("pinned_"):
                raise Invalid("Unrecognized CachingAllocator option: %s" % key)

    @staticmethod
    def pairs(text):
        """The options of a text; a comma within brackets belongs to a value."""
        depth, part, parts = 0, "", []
        for char in text:
            depth += (char == "[") - (char == "]")
            if char == "," and not depth:
                parts.append(part)
                part = ""
            else:
                part += char
        for part in parts + [part]:
            if part.strip():
                key, _, value = part.partition(":")
                yield key.strip(), value.strip()

    @staticmethod
    def steps(value):
        """4 divides all sizes into 4 steps between powers of 2; [256:1,512:2,>:4] depends on the size in MiB."""
        if not value.startswith("["):
            return [(0, int(value))]
        steps = []
        for part in value.strip("[]").split(","):
            key, _, divisions = part.partition(":")
            steps.append((key.strip(), int(divisions)))
        numbered = sorted((int(key), divisions) for key, divisions in steps if key != ">")
        last = [divisions for key, divisions in steps if key == ">"]
        # The value of a size holds from that size on; ">" from twice the largest one.
        if last:
            numbered.append((numbered[-1][0] * 2 if numbered else 0, last[0]))
        if numbered:
            numbered[0] = (0, numbered[0][1])
        return numbered[::-1]

    def rounded(self, size):
        for mib, divisions in self.divisions:
            if size >= mib * MIB:
                if divisions > 1 and size > SMALLEST * divisions:
                    floor = 1 << (size.bit_length() - 1)
                    return size if size == floor else round_up(size, floor // divisions)
                break
        return round_up(size, SMALLEST)
