/* Informs the triggers about requests and marks of the program, and about calls that are open for
 * too long. */
#include "agent/drain/call_filter_state.h"

#include <string.h>

void sj_call_filter_request(sj_call_filter *filter, uint64_t what, uint64_t ticks48)
{
    const uint64_t now = sj_record_whole_ticks(filter->now_ticks, ticks48);
    if (filter->judge.triggers == NULL) {
        return;
    }
    switch (what) {
    case SJ_REQUEST_START:
    case SJ_REQUEST_STOP:
        sj_triggers_pause(filter->judge.triggers, what == SJ_REQUEST_STOP);
        break;
    case SJ_REQUEST_DUMP:
        sj_triggers_event(filter->judge.triggers, SJ_TRIGGER_APP, "", 0, now,
                          filter->thread.number);
        break;
    case SJ_REQUEST_VSYNC:
        if (filter->last_tick != 0) {
            sj_triggers_event(filter->judge.triggers, SJ_TRIGGER_JANK, "",
                              sj_record_age(ticks48, filter->last_tick), now,
                              filter->thread.number);
        }
        filter->last_tick = ticks48;
        break;
    case SJ_REQUEST_WOKE:
        filter->woke = ticks48;
        break;
    case SJ_REQUEST_WAIT:
        if (filter->woke != 0) {
            sj_triggers_loop(filter->judge.triggers, filter->thread.name,
                             sj_record_age(ticks48, filter->woke), now, filter->thread.number,
                             &filter->judged);
        }
        filter->woke = 0;
        filter->judged = 0;
        break;
    default:
        break;
    }
}

/* Returns the ticks from a record to a time; 0 if the record was made later. */
static uint64_t open_ticks(const sj_call_filter *filter, uint64_t ticks48, uint64_t until_ticks)
{
    const uint64_t begun = sj_record_whole_ticks(filter->now_ticks, ticks48);
    return begun < until_ticks ? until_ticks - begun : 0;
}

/* Measures open calls only up to the previous watch. The drain reads an exit late if its thread
 * waited for space or for a processor before it wrote the record. */
void sj_call_filter_watch(sj_call_filter *filter, uint64_t now_ticks)
{
    const uint64_t seen_ticks = filter->watched_ticks;
    filter->watched_ticks = now_ticks;
    if (filter->judge.triggers == NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->depth; i++) {
        sj_filtered_call *call = &filter->calls[i];
        if (call->triggers != 0) {
            call->triggers &= ~sj_triggers_overdue(filter->judge.triggers, call->triggers,
                                                   open_ticks(filter, call->ticks48, seen_ticks),
                                                   now_ticks, filter->thread.number);
        }
    }
    if (filter->woke != 0) {
        sj_triggers_loop(filter->judge.triggers, filter->thread.name,
                         open_ticks(filter, filter->woke, seen_ticks), now_ticks,
                         filter->thread.number, &filter->judged);
    }
}

void sj_call_filter_mark(sj_call_filter *filter, const sj_record *record, uint64_t ticks48)
{
    char name[SJ_ARENA_MARK_BYTES + 1] = "";
    const uint32_t index = (uint32_t)sj_record_stack(record) % SJ_ARENA_MARKS;
    memcpy(name, sj_arena_view_mark(filter->thread.view, index)->name, SJ_ARENA_MARK_BYTES);
    sj_triggers_event(filter->judge.triggers, SJ_TRIGGER_MARK, name, 0,
                      sj_record_whole_ticks(filter->now_ticks, ticks48), filter->thread.number);
}
