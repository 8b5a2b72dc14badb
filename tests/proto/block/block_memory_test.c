/* If the n-th allocation fails, the codec returns an error, leaks nothing, and works again
 * afterwards. The program is linked with --wrap for the allocators that the codec calls. */
#include "tests/proto/block/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <zstd.h>

#include <cmocka.h>

static long allocations_left = -1; /* number of allocations that succeed; -1: all */

static bool may_allocate(void)
{
    if (allocations_left < 0) {
        return true;
    }
    if (allocations_left == 0) {
        return false;
    }
    allocations_left--;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    return may_allocate() ? __real_ZSTD_createCCtx() : NULL;
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
    return may_allocate() ? __real_ZSTD_createDCtx() : NULL;
}

static const stream_shape shape = {.seed = 3,
                                   .events = 4000,
                                   .open_depth = 9,
                                   .functions = 30,
                                   .repetition = 20,
                                   .step = 26,
                                   .longest_gap = 3000,
                                   .endings = 9,
                                   .gaps = 3};

/* Repeats one step with 0, 1, 2, ... successful allocations until the step succeeds. Writes their
 * number to `needed`. */
#define ALLOCATIONS_OF(expression, needed)                                                         \
    do {                                                                                           \
        for ((needed) = 0;; (needed)++) {                                                          \
            allocations_left = (needed);                                                           \
            const sj_status status_ = (expression);                                                \
            allocations_left = -1;                                                                 \
            if (status_ == SJ_OK) {                                                                \
                break;                                                                             \
            }                                                                                      \
            assert_int_equal(status_, SJ_ENOMEM);                                                  \
            assert_true((needed) < 100);                                                           \
        }                                                                                          \
    } while (0)

static void any_failed_allocation_is_reported(void **state)
{
    (void)state;
    sj_block_encoder *encoder = NULL;
    sj_block_decoder *decoder = NULL;
    sj_block_input input;
    sj_block block;
    long needed;
    stream_make(&shape, &input);
    uint8_t *bytes = malloc(sj_block_bound(&input));
    size_t size = 0;
    ALLOCATIONS_OF(sj_block_encoder_new(&encoder), needed);
    assert_int_equal(needed, 2);
    ALLOCATIONS_OF(sj_block_encode(encoder, &input, bytes, sj_block_bound(&input), &size), needed);
    assert_true(needed >= 1);
    ALLOCATIONS_OF(sj_block_decoder_new(&decoder), needed);
    assert_int_equal(needed, 2);
    ALLOCATIONS_OF(sj_block_decode(decoder, (sj_slice){bytes, size}, SJ_WANT_ALL, &block), needed);
    assert_true(needed >= 3); /* an attempt keeps its allocations for the next one */
    stream_check(&input, &block, SJ_WANT_ALL);
    sj_block_encoder_free(encoder);
    sj_block_decoder_free(decoder);
    free(bytes);
    stream_free(&input);
}

static void a_failed_new_gives_null_and_free_takes_null(void **state)
{
    (void)state;
    sj_block_encoder *encoder = (sj_block_encoder *)(uintptr_t)1;
    sj_block_decoder *decoder = (sj_block_decoder *)(uintptr_t)1;
    allocations_left = 0;
    const sj_status encoder_status = sj_block_encoder_new(&encoder);
    const sj_status decoder_status = sj_block_decoder_new(&decoder);
    allocations_left = -1;
    assert_int_equal(encoder_status, SJ_ENOMEM);
    assert_int_equal(decoder_status, SJ_ENOMEM);
    assert_null(encoder);
    assert_null(decoder);
    sj_block_encoder_free(encoder);
    sj_block_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failed_allocation_is_reported),
        cmocka_unit_test(a_failed_new_gives_null_and_free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
