/* Reads the calls of a session as nested begin and end events, for formats that list events. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_EVENTS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_EVENTS_H

#include "collector-server/export/call_part.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A track is a stack: the stack of a thread, of a coroutine, or of signal handlers. Calls on one
 * stack nest. */
typedef struct sj_call_track {
    int64_t stream_id;
    int64_t pid;       /* the session id if the process is not known */
    int64_t number;    /* main stack of a thread: its tid; else greater than any tid of Linux */
    bool is_own_stack; /* the stack is the main stack of a thread */
    /* Both names are owned by the reader, and "" if unknown. Unless the stack is the main stack of
     * a thread, `name` contains the stack's number. */
    char *name;
    char *process_name;
} sj_call_track;

typedef struct sj_call_event {
    const sj_call_track *track;
    const char *name;   /* name of the function */
    const char *ending; /* the column `ending` of `calls`; NULL in an end event */
    int64_t function_id;
    int64_t call_id; /* 0 in an end event */
    int64_t at_ns;   /* time of the begin or the end, since the session's start */
    bool is_begin;
    bool is_tail_call; /* the call was reached by a tail call; false in an end event */
    bool is_estimate;  /* the times of the call are estimates; false in an end event */
} sj_call_event;

/* Receives one event. All pointers are valid only during the call. */
typedef sj_status (*sj_call_event_receiver)(void *context, const sj_call_event *event);

/* Passes the begin and the end of each call of a part to `receive`, track by track. Holds only the
 * open calls in memory. Within a track, events nest and times do not decrease, except for calls
 * with untrusted times.
 *
 * If the end of a call is unknown, its end event has the end of its nearest caller whose end is
 * known. If the next call that is not inside it begins earlier, the event has the begin of that
 * call. If both are unknown, the call has no end event.
 *
 * Fails with SJ_EIO, SJ_ENOMEM, or the status of `receive`. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_call_events_read(sqlite3 *database, const sj_call_part *part,
                                            sj_call_event_receiver receive, void *context,
                                            sj_error *error);

#endif
