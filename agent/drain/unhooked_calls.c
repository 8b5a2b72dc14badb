#include "agent/drain/unhooked_calls.h"

#include "agent/drain/record_ticks.h"

void sj_unhooked_calls_init(sj_unhooked_calls *calls, sj_unhooked_set *freed, uint64_t start_ticks)
{
    *calls = (sj_unhooked_calls){.freed = freed};
    if (freed != NULL) {
        /* Open calls may be older than a change if the thread recorded before it was found, or had
         * open calls at attach. */
        calls->seen_changes = sj_unhooked_set_changes_until(freed, start_ticks);
        calls->late_records = sj_unhooked_set_changes(freed) != 0 ? SJ_UNHOOKED_LATE_RECORDS : 0;
    }
}

static bool is_value(const sj_record *record)
{
    return sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_VALUE;
}

/* Returns the number of records that were written before a change. */
static uint32_t count_before(const sj_record *records, uint32_t count, uint64_t ticks,
                             uint64_t now_ticks)
{
    uint32_t before = 0;
    while (before < count &&
           (is_value(&records[before]) ||
            sj_record_whole_ticks(now_ticks, sj_record_ticks48(&records[before])) < ticks)) {
        before++;
    }
    while (before < count && before > 0 && is_value(&records[before - 1])) {
        before--; /* a value has no time, and belongs to the record after it */
    }
    return before;
}

/* Returns the point of the changes up to number `changes`, which the thread's calls now follow. */
static sj_unhooked_point follow(sj_unhooked_calls *calls, uint32_t changes)
{
    const sj_unhooked_point point = {.since = {.freed = calls->freed, .seen = calls->seen_changes}};
    calls->seen_changes = changes;
    calls->late_records = SJ_UNHOOKED_LATE_RECORDS;
    return point;
}

/* Finds the first delayed entry. A thread may have been stopped in an entry's probe, or may have
 * waited there for space. It then records the entry of an unhooked function only after the change,
 * and never its exit. Returns the number of records up to the entry; 0: there is none. */
static uint32_t find_late(sj_unhooked_calls *calls, const sj_record *records, uint32_t count)
{
    for (uint32_t i = 0; i < count && calls->late_records > 0; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        calls->late_records--;
        if (tag != 0 && sj_record_calls(tag) != 0 &&
            sj_unhooked_set_is_free(calls->freed, tag, calls->seen_changes)) {
            return i + 1;
        }
    }
    return 0;
}

/* The point of a change also covers open calls of functions that only a later change unhooked. */
uint32_t sj_unhooked_calls_find(sj_unhooked_calls *calls, const sj_record *records, uint32_t count,
                                uint64_t now_ticks, sj_unhooked_point *point, bool *found)
{
    *found = false;
    if (calls->freed == NULL) {
        return count;
    }
    const uint32_t change = calls->seen_changes + 1;
    const uint32_t before =
        calls->seen_changes == sj_unhooked_set_changes(calls->freed)
            ? count
            : count_before(records, count, sj_unhooked_set_time(calls->freed, change), now_ticks);
    const uint32_t late = find_late(calls, records, before);
    if (late != 0) {
        *point = (sj_unhooked_point){.function = sj_record_tag(&records[late - 1])};
        *found = true;
        return late;
    }
    if (before != count) { /* else the change is later than these records */
        *point = follow(calls, change);
        *found = true;
    }
    return before;
}

bool sj_unhooked_calls_end(sj_unhooked_calls *calls, sj_unhooked_point *point)
{
    const uint32_t changes = calls->freed != NULL ? sj_unhooked_set_changes(calls->freed) : 0;
    if (changes == calls->seen_changes) {
        return false;
    }
    *point = follow(calls, changes);
    return true;
}

bool sj_unhooked_point_has(void *point, uint32_t function)
{
    sj_unhooked_point *all = point;
    return all->function != 0 ? function == all->function
                              : sj_unhooked_set_has(&all->since, function);
}
