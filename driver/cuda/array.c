#include "cuda.h"

#include "sim/base.h"

/* Bits of an element; of block-compressed formats, of one of the block's elements. */
static uint64_t element_bits(uint32_t format, uint32_t channels)
{
    switch (format) {
    case 0x01: /* 8 bits a channel */
    case 0x08:
        return 8 * (uint64_t)channels;
    case 0x02: /* 16 bits a channel */
    case 0x09:
    case 0x10:
        return 16 * (uint64_t)channels;
    case 0x91: /* BC1, BC4 */
    case 0x92:
    case 0x97:
    case 0x98:
        return 4;
    case 0xb0: /* NV12 */
        return 12;
    case 0xc0: /* normalized, 8 bits, of 1, 2, 4 channels */
    case 0xc6:
        return 8;
    case 0xc1:
    case 0xc7:
    case 0xc3: /* 16 bits */
    case 0xc9:
        return 16;
    case 0xc2:
    case 0xc8:
    case 0xc4:
    case 0xca:
        return 32;
    case 0xc5:
    case 0xcb:
        return 64;
    default:
        if (format >= 0x93 && format <= 0x9e) /* the other BC */
            return 8;
        return 32 * (uint64_t)channels;
    }
}

static uint64_t half(uint64_t extent) { return extent > 1 ? extent / 2 : extent; }

/* Each level has half the extents of the one before. An extent of 0 is a dimension that is not there. */
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned levels)
{
    enum { LAYERED = 0x01, CUBEMAP = 0x04 }; /* depth counts layers or faces: no level halves them */
    uint64_t bits = element_bits(description->format, description->channels), sum = 0;
    uint64_t width = description->width, height = description->height, depth = description->depth;
    for (unsigned level = 0; level < levels && level < 64; level++) {
        uint64_t elements = times(times(width, height ? height : 1), depth ? depth : 1);
        uint64_t level_bits = times(elements, bits);
        if (level_bits == ~0ULL || __builtin_add_overflow(sum, level_bits / 8 + (level_bits % 8 != 0), &sum))
            return ~0ULL;
        width = half(width);
        height = half(height);
        if (!(description->flags & (LAYERED | CUBEMAP)))
            depth = half(depth);
    }
    return sum;
}
