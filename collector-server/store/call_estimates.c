#include "collector-server/store/call_estimates.h"

#include "proto/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Functions with higher numbers are never counted (abi/record.h). */
enum { COUNTED_FUNCTIONS = 1 << 16 };

typedef struct open_call {
    uint64_t start;
    uint32_t function;
    bool is_untimed;
} open_call;

struct sj_call_estimates {
    sj_call_estimate functions[COUNTED_FUNCTIONS];
    bool is_counted[COUNTED_FUNCTIONS]; /* in the block at hand */
    open_call *open;
    size_t count, capacity;
};

void sj_call_estimates_free(sj_call_estimates *estimates)
{
    if (estimates != NULL) {
        free(estimates->open);
        free(estimates);
    }
}

static sj_status push(sj_call_estimates *estimates, const open_call *call)
{
    SJ_TRY(sj_array_reserve(&estimates->open, &estimates->capacity, estimates->count, 1,
                            sizeof(*estimates->open)));
    estimates->open[estimates->count++] = *call;
    return SJ_OK;
}

static void end_call(sj_call_estimates *estimates, const open_call *call, uint64_t ticks)
{
    if (call->function >= COUNTED_FUNCTIONS) {
        return;
    }
    sj_call_estimate *sums = &estimates->functions[call->function];
    const double lasted = (double)(ticks - call->start);
    if (call->is_untimed) {
        sums->untimed++;
        sums->untimed_ticks += lasted;
    } else if (estimates->is_counted[call->function]) {
        sums->timed++;
        sums->timed_ticks += lasted;
        sums->timed_squares += lasted * lasted;
    }
}

static void note_counted(sj_call_estimates *estimates, const sj_block *block, bool is_counted)
{
    for (size_t i = 0; i < block->function_count; i++) {
        if (block->untimed[i + 1] != 0 && block->functions[i] < COUNTED_FUNCTIONS) {
            estimates->is_counted[block->functions[i]] = is_counted;
        }
    }
}

static sj_status walk(sj_call_estimates *estimates, const sj_block *block)
{
    estimates->count = 0;
    for (size_t i = 0; i < block->frame_count; i++) {
        const sj_stack_frame *frame = &block->frames[i];
        SJ_TRY(push(estimates, &(open_call){.start = frame->start_ticks,
                                            .function = frame->function,
                                            .is_untimed = (frame->flags & SJ_CALL_UNTIMED) != 0}));
    }
    for (size_t i = 0; i < block->header.event_count; i++) {
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        if (symbol != SJ_EVENT_LEAVE) {
            SJ_TRY(push(estimates, &(open_call){.start = block->ticks[i],
                                                .function = block->functions[symbol - 1],
                                                .is_untimed = block->untimed != NULL &&
                                                              block->untimed[symbol] != 0}));
        } else if (estimates->count != 0) { /* else a call of a stack that is stored apart */
            end_call(estimates, &estimates->open[--estimates->count], block->ticks[i]);
        }
    }
    return SJ_OK;
}

static bool has_untimed(const sj_block *block)
{
    for (size_t i = 0; i < block->frame_count; i++) {
        if ((block->frames[i].flags & SJ_CALL_UNTIMED) != 0) {
            return true;
        }
    }
    return block->untimed != NULL;
}

sj_status sj_call_estimates_add(sj_call_estimates **estimates, const sj_block *block)
{
    if (!has_untimed(block)) {
        return SJ_OK;
    }
    if (*estimates == NULL) {
        *estimates = calloc(1, sizeof(**estimates));
    }
    if (*estimates == NULL) {
        return SJ_ENOMEM;
    }
    if (block->untimed != NULL) {
        note_counted(*estimates, block, true);
    }
    const sj_status status = walk(*estimates, block);
    if (block->untimed != NULL) {
        note_counted(*estimates, block, false);
    }
    return status;
}

const sj_call_estimate *sj_call_estimates_next(const sj_call_estimates *estimates, size_t *place,
                                               uint32_t *function)
{
    for (; estimates != NULL && *place < COUNTED_FUNCTIONS; *place += 1) {
        if (estimates->functions[*place].untimed != 0) {
            *function = (uint32_t)*place;
            return &estimates->functions[(*place)++];
        }
    }
    return NULL;
}

void sj_call_estimates_clear(sj_call_estimates *estimates)
{
    if (estimates != NULL) {
        memset(estimates->functions, 0, sizeof(estimates->functions));
    }
}

double sj_call_estimate_error(const sj_call_estimate *estimate)
{
    if (estimate->timed < 2) {
        return estimate->untimed_ticks;
    }
    const double count = (double)estimate->timed;
    const double squares =
        estimate->timed_squares - estimate->timed_ticks * estimate->timed_ticks / count;
    const double variance = squares > 0 ? squares / (count - 1) : 0;
    return (double)estimate->untimed * sqrt(variance / count);
}
