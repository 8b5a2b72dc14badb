/* Reads the calls of a session as begin and end events that nest: the order in which formats of
 * events list them. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_EVENTS_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_EVENTS_H

#include "collector-server/export/call_part.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A track is the own stack of a thread. Coroutines and signal stacks have tracks of their own,
 * because their calls are not inside the calls of the thread. */
typedef struct sj_call_track {
    int64_t stream_id;
    int64_t pid;    /* the session id if the process is not known */
    int64_t number; /* the thread id; above every thread id of Linux if it is not an own stack */
    bool is_own_stack;
    /* Owned by the reader. The name of a track that is not an own stack tells the stack's number.
     * Empty if it is not known. */
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
    bool is_tail_call; /* the call was jumped to; false in an end event */
    bool is_estimate;  /* the times of the call are estimates; false in an end event */
} sj_call_event;

/* Receives one event. Everything is borrowed for the call. */
typedef sj_status (*sj_call_event_receiver)(void *context, const sj_call_event *event);

/* Passes the begin and the end of each call of a part to `receive`, track by track, as a stream:
 * only open calls are held in memory. Within a track events nest, and times do not decrease except
 * where those of untrusted calls do. A call whose end is unknown ends with its nearest caller that
 * has an end, or where its next sibling begins, whichever is earlier. It has no end event if
 * neither is known. Returns SJ_EIO, SJ_ENOMEM, or the receiver's status. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_call_events_read(sqlite3 *database, const sj_call_part *part,
                                            sj_call_event_receiver receive, void *context,
                                            sj_error *error);

#endif
