/* Prints calls as text, in the order of their entries. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPLAY_H
#define SJ_COLLECTOR_SERVER_CLI_REPLAY_H

#include "collector-server/cli/terminal.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_replay_request {
    int64_t session_id;
    const char *thread;            /* name, tid or number; NULL: all */
    int64_t from_ns, to_ns;        /* window of entry times, since the session's start, inclusive */
    int64_t first_call, last_call; /* call ids, inclusive */
    int64_t marked_call;           /* shown with an arrow; 0: none */
    int64_t count;                 /* maximum number of calls; -1: all */
    bool wide;                     /* do not cut names and values */
    bool json;                     /* print JSON (json_output.h) instead of lines */
    bool follow; /* also print calls that are stored later, until the session ends */
} sj_replay_request;

/* Prints one line per call: entry time, duration, thread (if there are several), function and
 * recorded values. Functions are indented below their callers. Before the first printed call of a
 * stream, prints the calls that were open when this call was entered. Prints a line for each gap.
 * Calls of several threads are merged by time. Memory grows with the number of threads that run in
 * the window, not with the number of calls.
 *
 * Blocks on the database. With `follow`, blocks until the session ends or the output is closed.
 * Fails with SJ_ENOTFOUND if the thread does not exist or ran outside of the window. Without
 * `json`, also fails with SJ_ENOTFOUND if no call was entered in the window. Fails with SJ_EIO if
 * the database cannot be read or memory runs out. */
SJ_MUST_CHECK sj_status sj_replay_print(sqlite3 *database, const sj_replay_request *request,
                                        const sj_terminal *terminal, sj_error *error);

#endif
