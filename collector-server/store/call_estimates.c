#include "collector-server/store/call_estimates.h"

#include "proto/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Only functions with numbers below this have untimed calls (SJ_SHORT_FUNCTIONS in abi/record.h).
 */
enum { COUNTED_FUNCTIONS = 1 << 16 };

typedef struct open_call {
    uint64_t start;
    uint32_t function;
    bool is_untimed;
    /* The duration of the call includes a gap or a wait for the drain. */
    bool is_disturbed;
} open_call;

typedef struct function_estimate {
    sj_call_estimate sums;
    bool is_counted; /* the current block has untimed calls of the function */
    bool is_changed; /* changed since its row was written */
} function_estimate;

struct sj_call_estimates {
    function_estimate *functions; /* indexed by function number, up to the highest counted one */
    size_t function_count, function_capacity;
    open_call *open;
    size_t count, capacity;
    sj_stored_estimate *stored; /* sorted by function_id */
    size_t stored_count, stored_capacity;
};

void sj_call_estimates_free(sj_call_estimates *estimates)
{
    if (estimates != NULL) {
        free(estimates->functions);
        free(estimates->open);
        free(estimates->stored);
        free(estimates);
    }
}

size_t sj_call_estimates_bytes(const sj_call_estimates *estimates)
{
    return estimates == NULL
               ? 0
               : sizeof(*estimates) + estimates->function_capacity * sizeof(*estimates->functions) +
                     estimates->capacity * sizeof(*estimates->open) +
                     estimates->stored_capacity * sizeof(*estimates->stored);
}

/* Allocates the entries of all functions up to this one. Its number is below COUNTED_FUNCTIONS. */
static sj_status hold(sj_call_estimates *estimates, uint32_t function)
{
    if (function < estimates->function_count) {
        return SJ_OK;
    }
    const size_t more = function + 1 - estimates->function_count;
    SJ_TRY(sj_array_reserve(&estimates->functions, &estimates->function_capacity,
                            estimates->function_count, more, sizeof(*estimates->functions)));
    memset(estimates->functions + estimates->function_count, 0,
           more * sizeof(*estimates->functions));
    estimates->function_count += more;
    return SJ_OK;
}

static sj_status push(sj_call_estimates *estimates, const open_call *call)
{
    if (estimates->count == estimates->capacity) {
        SJ_TRY(sj_array_reserve(&estimates->open, &estimates->capacity, estimates->count, 1,
                                sizeof(*estimates->open)));
    }
    estimates->open[estimates->count++] = *call;
    return SJ_OK;
}

/* Adds a call that ended at `ticks` to the sums of its function. A timed call counts only if the
 * block also has untimed calls of the function and the call is not disturbed. */
static void end_call(sj_call_estimates *estimates, const open_call *call, uint64_t ticks)
{
    if (call->function >= estimates->function_count) {
        return; /* a function without untimed calls */
    }
    function_estimate *function = &estimates->functions[call->function];
    sj_call_estimate *sums = &function->sums;
    const double lasted = (double)(ticks - call->start);
    if (call->is_untimed) {
        sums->untimed++;
        sums->untimed_ticks += lasted;
        function->is_changed = true;
    } else if (function->is_counted && !call->is_disturbed) {
        sums->timed++;
        sums->timed_ticks += lasted;
        sums->timed_squares += lasted * lasted;
        function->is_changed = true;
    }
}

static sj_status note_counted(sj_call_estimates *estimates, const sj_block *block)
{
    for (size_t i = 0; i < block->function_count; i++) {
        if (block->untimed[i + 1] != 0 && block->functions[i] < COUNTED_FUNCTIONS) {
            SJ_TRY(hold(estimates, block->functions[i]));
            estimates->functions[block->functions[i]].is_counted = true;
        }
    }
    return SJ_OK;
}

static void forget_counted(sj_call_estimates *estimates, const sj_block *block)
{
    for (size_t i = 0; i < block->function_count; i++) {
        if (block->functions[i] < estimates->function_count) {
            estimates->functions[block->functions[i]].is_counted = false;
        }
    }
}

/* Marks all open calls as disturbed. All callers of a marked call are marked already. */
static void disturb(sj_call_estimates *estimates)
{
    for (size_t i = estimates->count; i-- > 0 && !estimates->open[i].is_disturbed;) {
        estimates->open[i].is_disturbed = true;
    }
}

/* Replaces the open calls by those that are open where a block begins. */
static sj_status push_frames(sj_call_estimates *estimates, const sj_block *block)
{
    estimates->count = 0;
    for (size_t i = 0; i < block->frame_count; i++) {
        const sj_stack_frame *frame = &block->frames[i];
        if ((frame->flags & SJ_CALL_UNTIMED) != 0 && frame->function < COUNTED_FUNCTIONS) {
            SJ_TRY(hold(estimates, frame->function));
        }
        SJ_TRY(push(estimates, &(open_call){.start = frame->start_ticks,
                                            .function = frame->function,
                                            .is_untimed = (frame->flags & SJ_CALL_UNTIMED) != 0,
                                            .is_disturbed = i < block->header.gap_depth ||
                                                            i < block->header.waited_depth}));
    }
    return SJ_OK;
}

static sj_status walk(sj_call_estimates *estimates, const sj_block *block)
{
    size_t gap = 0;
    SJ_TRY(push_frames(estimates, block));
    for (size_t i = 0; i < block->header.event_count; i++) {
        for (; gap < block->gap_count && block->gaps[gap].before_event <= i; gap++) {
            disturb(estimates);
        }
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        if (symbol != SJ_EVENT_LEAVE) {
            SJ_TRY(push(estimates, &(open_call){.start = block->ticks[i],
                                                .function = block->functions[symbol - 1],
                                                .is_untimed = block->untimed != NULL &&
                                                              block->untimed[symbol] != 0}));
        } else if (estimates->count != 0) {
            /* An exit without an open call is ignored: the start of its call is only in a
             * DEEP_FRAMES block. */
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

static sj_status make(sj_call_estimates **estimates)
{
    if (*estimates == NULL) {
        *estimates = calloc(1, sizeof(**estimates));
    }
    return *estimates != NULL ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_call_estimates_restore(sj_call_estimates **estimates, const sj_stored_estimate *stored)
{
    SJ_TRY(make(estimates));
    sj_call_estimates *of = *estimates;
    SJ_TRY(sj_array_reserve(&of->stored, &of->stored_capacity, of->stored_count, 1,
                            sizeof(*of->stored)));
    of->stored[of->stored_count++] = *stored;
    return SJ_OK;
}

static int compare_ids(const void *id, const void *stored)
{
    const int64_t wanted = *(const int64_t *)id;
    const int64_t other = ((const sj_stored_estimate *)stored)->function_id;
    return (wanted > other) - (wanted < other);
}

sj_stored_estimate sj_call_estimates_stored(const sj_call_estimates *estimates, int64_t function_id)
{
    const sj_stored_estimate *found =
        estimates == NULL || estimates->stored_count == 0
            ? NULL
            : bsearch(&function_id, estimates->stored, estimates->stored_count,
                      sizeof(*estimates->stored), compare_ids);
    return found != NULL ? *found : (sj_stored_estimate){.function_id = function_id};
}

sj_status sj_call_estimates_add(sj_call_estimates **estimates, const sj_block *block)
{
    if (!has_untimed(block)) {
        return SJ_OK;
    }
    SJ_TRY(make(estimates));
    sj_status status = block->untimed != NULL ? note_counted(*estimates, block) : SJ_OK;
    if (status == SJ_OK) {
        status = walk(*estimates, block);
    }
    forget_counted(*estimates, block);
    return status;
}

const sj_call_estimate *sj_call_estimates_next(const sj_call_estimates *estimates, size_t *place,
                                               uint32_t *function)
{
    for (; estimates != NULL && *place < estimates->function_count; *place += 1) {
        const function_estimate *at = &estimates->functions[*place];
        if (at->is_changed && at->sums.untimed != 0) {
            *function = (uint32_t)*place;
            *place += 1;
            return &at->sums;
        }
    }
    return NULL;
}

void sj_call_estimates_clean(sj_call_estimates *estimates)
{
    for (size_t i = 0; estimates != NULL && i < estimates->function_count; i++) {
        estimates->functions[i].is_changed = false;
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
