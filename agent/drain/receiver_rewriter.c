#include "agent/drain/receiver_rewriter.h"

#include <stdlib.h>
#include <string.h>

void sj_receiver_rewriter_deinit(sj_receiver_rewriter *receivers)
{
    sj_hash_map_deinit(&receivers->open);
    sj_hash_map_deinit(&receivers->known);
}

bool sj_receiver_rewriter_are_idle(const sj_receiver_rewriter *receivers)
{
    return receivers->open.count == 0 && receivers->waiting_count == 0;
}

static uint32_t kind_of(uint32_t tag)
{
    return tag >> SJ_RECORD_FUNCTION_BITS;
}

/* Collects the pairs that are new. Each pair stands for its own function until the registry has
 * returned a replacement. */
static sj_status meet_new(sj_receiver_rewriter *receivers, const sj_record *records, uint32_t count,
                          sj_receiver_pair *pairs, size_t *pair_count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        const sj_hash_entry known = {.key = sj_record_value(&records[i]),
                                     .sub = tag & SJ_RECORD_FUNCTION_MASK,
                                     .first = tag & SJ_RECORD_FUNCTION_MASK};
        if (kind_of(tag) != SJ_RECORD_VALUE || sj_record_part_of(&records[i]) != SJ_PART_RECEIVER ||
            sj_hash_map_find(&receivers->known, known.key, known.sub) != NULL) {
            continue;
        }
        SJ_TRY(sj_hash_map_put(&receivers->known, &known));
        pairs[(*pair_count)++] = (sj_receiver_pair){.function = known.sub, .isa = known.key};
    }
    return SJ_OK;
}

static sj_status learn(sj_receiver_rewriter *receivers, const sj_record *records, uint32_t count,
                       uint64_t now_ticks)
{
    size_t pair_count = 0;
    sj_receiver_pair *pairs = calloc(count, sizeof(*pairs));
    if (pairs == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = meet_new(receivers, records, count, pairs, &pair_count);
    if (status == SJ_OK && pair_count != 0 && receivers->registry != NULL) {
        status = sj_registry_add_receivers(receivers->registry, receivers->process, pairs,
                                           pair_count, now_ticks);
    }
    for (size_t i = 0; i < pair_count && status == SJ_OK && receivers->registry != NULL; i++) {
        sj_hash_entry *known = sj_hash_map_find(&receivers->known, pairs[i].isa, pairs[i].function);
        known->first = pairs[i].result;
        if (receivers->freed != NULL && pairs[i].result != pairs[i].function) {
            sj_unhooked_set_follow(receivers->freed, pairs[i].result, pairs[i].function);
        }
    }
    free(pairs);
    return status;
}

static void wait_for_entry(sj_receiver_rewriter *receivers, const sj_record *record,
                           uint32_t function)
{
    const sj_hash_entry *known =
        sj_hash_map_find(&receivers->known, sj_record_value(record), function);
    if (receivers->waiting_count == SJ_RECEIVER_REWRITER_WAITING) {
        receivers->waiting_count--;
        memmove(receivers->waiting, receivers->waiting + 1,
                receivers->waiting_count * sizeof(receivers->waiting[0]));
    }
    receivers->waiting[receivers->waiting_count++] =
        (sj_waiting_value){.function = function,
                           .stack = sj_record_value_stack(record),
                           .result = known != NULL ? known->first : function};
}

/* Returns the function to record for an entry. Removes its waiting value and those after it, which
 * belonged to signal handlers that longjmp left. */
static uint32_t pop_waiting(sj_receiver_rewriter *receivers, uint32_t function, uint64_t stack)
{
    for (size_t i = receivers->waiting_count; i-- > 0;) {
        const sj_waiting_value *value = &receivers->waiting[i];
        if (value->function == function && value->stack == (uint32_t)stack) {
            receivers->waiting_count = i;
            return value->result;
        }
    }
    return function;
}

static void set_function(sj_record *record, sj_record_kind kind, uint32_t function)
{
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    memcpy(record->bytes + 12, &tag, sizeof(tag));
}

static sj_status translate_entry(sj_receiver_rewriter *receivers, sj_record *record,
                                 uint32_t function)
{
    const uint64_t stack = sj_record_frame(record);
    const uint32_t result = pop_waiting(receivers, function, stack);
    if (result != function) {
        const sj_hash_entry call = {.key = stack, .first = function, .second = result};
        set_function(record, SJ_RECORD_ENTER, result);
        return sj_hash_map_put(&receivers->open, &call);
    }
    sj_hash_entry *ended = sj_hash_map_find(&receivers->open, stack, 0);
    if (ended != NULL) { /* a throw or a longjmp ended that call */
        sj_hash_map_remove(&receivers->open, ended);
    }
    return SJ_OK;
}

static void translate_exit(sj_receiver_rewriter *receivers, sj_record *record, uint32_t function)
{
    sj_hash_entry *call = sj_hash_map_find(&receivers->open, sj_record_frame(record), 0);
    if (call != NULL && call->first == function) {
        set_function(record, SJ_RECORD_LEAVE, call->second);
        sj_hash_map_remove(&receivers->open, call);
    }
}

sj_status sj_receiver_rewriter_translate(sj_receiver_rewriter *receivers, sj_record *records,
                                         uint32_t *count, uint64_t now_ticks)
{
    uint32_t kept = 0;
    SJ_TRY(learn(receivers, records, *count, now_ticks));
    for (uint32_t i = 0; i < *count; i++) {
        sj_record record = records[i];
        const uint32_t tag = sj_record_tag(&record);
        const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
        switch (kind_of(tag)) {
        case SJ_RECORD_VALUE:
            if (sj_record_part_of(&record) == SJ_PART_RECEIVER) {
                wait_for_entry(receivers, &record, function);
                continue;
            }
            break; /* a value of another kind */
        case SJ_RECORD_ENTER:
            SJ_TRY(translate_entry(receivers, &record, function));
            break;
        case SJ_RECORD_LEAVE:
            translate_exit(receivers, &record, function);
            break;
        default:
            if (function == SJ_NOTE_DROPPED_EVENTS) {
                receivers->waiting_count = 0;
            }
            break;
        }
        records[kept++] = record;
    }
    *count = kept;
    return SJ_OK;
}
