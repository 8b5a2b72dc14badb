/* Unhooked calls: finds the points in the records of a thread after which open calls of unhooked
 * functions have no exit. Such a call is not ended by its caller's exit, so the blocks need a gap
 * there. One for each thread; used by the drain's thread only. */
#ifndef SJ_AGENT_DRAIN_UNHOOKED_CALLS_H
#define SJ_AGENT_DRAIN_UNHOOKED_CALLS_H

#include "agent/abi/record.h"
#include "agent/livepatch/unhooked_set.h"

/* A thread that was stopped in a probe completes the probe after its signal handlers have returned.
 * This is the number of records that the handlers may write meanwhile. */
enum { SJ_UNHOOKED_LATE_RECORDS = 4096 };

typedef struct sj_unhooked_calls {
    sj_unhooked_set *freed; /* borrowed; NULL: functions stay hooked */
    uint32_t seen_changes;  /* number of changes of `freed` that were applied */
    /* number of records to come that may contain a delayed entry of a function that was unhooked */
    uint32_t late_records;
} sj_unhooked_calls;

/* The functions whose open calls have no exit. */
typedef struct sj_unhooked_point {
    uint32_t function; /* 0: all that were unhooked since `since` */
    sj_unhooked_set_since since;
} sj_unhooked_point;

/* Initializes the state of a thread that began at `start_ticks`. */
void sj_unhooked_calls_init(sj_unhooked_calls *calls, sj_unhooked_set *freed, uint64_t start_ticks);

/* Finds the first point in the records. Returns the number of records before it, and true in
 * `*found`. If there is none, returns `count` and false. The next call continues after the point.
 * `now_ticks` is not earlier than any record. */
uint32_t sj_unhooked_calls_find(sj_unhooked_calls *calls, const sj_record *records, uint32_t count,
                                uint64_t now_ticks, sj_unhooked_point *point, bool *found);

/* Returns the point at the end of a thread's records; false if there is none. */
bool sj_unhooked_calls_end(sj_unhooked_calls *calls, sj_unhooked_point *point);

/* True if an open call of `function` has no exit. `point` is an sj_unhooked_point. */
bool sj_unhooked_point_has(void *point, uint32_t function);

#endif
