#include "tests/support/assembler_check.h"

#include <stdlib.h>

static const char *check_stream(const block_store *store, uint32_t stream)
{
    uint64_t event = 0;
    uint64_t call = 0;
    uint32_t depth = 0;
    bool any = false;
    for (size_t i = 0; i < store->count; i++) {
        const sj_block_header *header = &store->blocks[i].header;
        if (header->stream != stream || header->kind != SJ_BLOCK_CALLS) {
            continue;
        }
        if (header->first_event != event) {
            return "events of a stream are not numbered on";
        }
        if (any ? header->first_call != call : header->first_call > header->open_depth) {
            return "calls of a stream are not numbered on";
        }
        if (any && store->refused == 0 && header->open_depth != depth) {
            return "a key-frame is not where the block before ended";
        }
        event = header->first_event + header->event_count + header->lost_events;
        call = header->first_call + header->call_count + header->lost_calls;
        depth = header->end_depth;
        any = true;
    }
    return NULL;
}

const char *assembler_check(const sj_assembler_counters *counters, const block_store *store)
{
    uint64_t events = 0;
    uint64_t calls = 0;
    for (size_t i = 0; i < store->count; i++) {
        const sj_block_header *header = &store->blocks[i].header;
        if (header->kind == SJ_BLOCK_CALLS) {
            events += header->event_count;
            calls += header->call_count;
        }
    }
    if (counters->records != counters->calls - counters->preopened + counters->returned +
                                 counters->jumped + counters->thrown + counters->overtaken +
                                 counters->interrupted + counters->inherited_exits +
                                 counters->orphan_exits + counters->notes +
                                 counters->value_records + counters->bad_records) {
        return "records fed are not accounted for";
    }
    if (counters->events + counters->refused_events !=
        counters->calls + counters->returned + counters->ended_jumped + counters->unwound +
            counters->truncated + counters->left_open) {
        return "events are not accounted for";
    }
    if (counters->thrown == 0 &&
        (int64_t)(counters->events + counters->refused_events) - counters->offered_endings !=
            (int64_t)(counters->calls + counters->returned + counters->jumped)) {
        return "blocks do not tell of the records that the calls were made of";
    }
    if (events != counters->events || calls + counters->refused_calls != counters->calls) {
        return "blocks do not hold the events counted";
    }
    for (uint32_t stream = 1; stream <= store->streams; stream++) {
        const char *wrong = check_stream(store, stream);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}
