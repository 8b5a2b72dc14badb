/* Function bitmap: an approximate set of the functions that a block enters, stored in
 * `blocks.functions`.
 *
 * A bitmap has a power of two of bytes, 8 to 1,024. Bit sj_function_bit(function, bits) is set for
 * each session-wide function id that the block enters. A clear bit proves that the block does not
 * enter the function, so a query by function need not decode the block. A set bit proves
 * nothing. */
#ifndef SJ_COLLECTOR_SERVER_STORE_FUNCTION_BITMAP_H
#define SJ_COLLECTOR_SERVER_STORE_FUNCTION_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SJ_FUNCTION_BITMAP_MIN_BYTES = 8, SJ_FUNCTION_BITMAP_MAX_BYTES = 1024 };

/* Returns the bit of a function in a bitmap of `bit_count` bits, a power of two. */
static inline uint32_t sj_function_bit(uint32_t function, uint32_t bit_count)
{
    return (function * UINT32_C(0x9e3779b1) >> 16 ^ function) & (bit_count - 1);
}

/* Sets the bits of `count` functions in `output`, which has at least SJ_FUNCTION_BITMAP_MAX_BYTES.
 * Returns the size of the bitmap in bytes: about one byte per function. */
static inline size_t sj_function_bitmap_fill(const uint32_t *functions, size_t count,
                                             uint8_t *output)
{
    size_t size = SJ_FUNCTION_BITMAP_MIN_BYTES;
    while (size < count && size < SJ_FUNCTION_BITMAP_MAX_BYTES) {
        size *= 2;
    }
    memset(output, 0, size);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t bit = sj_function_bit(functions[i], (uint32_t)size * 8);
        output[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    return size;
}

/* True if a block may enter a function. Also true for bitmaps whose size is not a power of two,
 * which another version wrote. */
static inline bool sj_function_bitmap_may_have(const uint8_t *bitmap, size_t size_bytes,
                                               uint32_t function)
{
    if (size_bytes == 0 || size_bytes > SJ_FUNCTION_BITMAP_MAX_BYTES ||
        (size_bytes & (size_bytes - 1)) != 0) {
        return true;
    }
    const uint32_t bit = sj_function_bit(function, (uint32_t)size_bytes * 8);
    return (bitmap[bit / 8] >> bit % 8 & 1) != 0;
}

#endif
