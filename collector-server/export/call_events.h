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
    int64_t number;    /* the tid for the main stack of a thread, else above every tid of Linux */
    bool is_own_stack; /* the stack is the main stack of a thread */
    /* Owned by the reader; "" if unknown. The name of any stack but the main stack of a thread
     * contains the stack's number. */
    char *name;
    char *process_name;
} sj_call_track;

typedef struct sj_call_event {
    const sj_call_track *track;
    const char *name;
    const char *ending; /* as in `calls`; NULL in an end event */
    int64_t function_id;
    int64_t call_id; /* 0 in an end event */
    int64_t at_ns;
    bool is_begin;
    bool is_tail_call; /* the call was reached by a tail call; false in an end event */
    bool is_estimate;  /* the times of the call are estimates; false in an end event */
} sj_call_event;

/* Receives one event. All pointers are valid only during the call. */
typedef sj_status (*sj_call_event_receiver)(void *context, const sj_call_event *event);

/* Passes the begin and the end of each call of a part to `receive`, track by track. Holds only the
 * open calls in memory. Within a track, events nest and times do not decrease, except for calls
 * with untrusted times. A call whose end is unknown ends with its nearest caller that has an end,
 * or earlier where the next call outside it begins. It has no end event if neither is known. Fails
 * with SJ_EIO, SJ_ENOMEM, or the status of `receive`. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_call_events_read(sqlite3 *database, const sj_call_part *part,
                                            sj_call_event_receiver receive, void *context,
                                            sj_error *error);

#endif
