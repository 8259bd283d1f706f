/* Prints the bytes of an array: arrays WIDTH HEIGHT DEPTH FORMAT CHANNELS FLAGS LEVELS. */
#include "cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    uint64_t n[7];
    for (int i = 0; i < 7; i++)
        n[i] = i + 1 < count ? strtoull(arguments[i + 1], NULL, 0) : 0;
    CUDA_ARRAY3D_DESCRIPTOR d = {n[0], n[1], n[2], (uint32_t)n[3], (uint32_t)n[4], (uint32_t)n[5]};
    printf("%llu\n", (unsigned long long)array_bytes(&d, (unsigned)n[6]));
    return 0;
}
