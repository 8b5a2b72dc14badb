/* Prints calls as text, in the order of their entries. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPLAY_H
#define SJ_COLLECTOR_SERVER_CLI_REPLAY_H

#include "collector-server/cli/terminal.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_replay_request {
    int64_t session_id;
    const char *thread;            /* its name, tid or number; NULL: all */
    int64_t from_ns, to_ns;        /* window of entry times, since the session's start, inclusive */
    int64_t first_call, last_call; /* call ids, inclusive */
    int64_t marked_call;           /* shown with an arrow; 0: none */
    int64_t count;                 /* maximum number of calls; -1: all */
    bool wide;                     /* names are not cut */
    bool json;                     /* an array of objects instead of lines */
    bool follow; /* prints calls as they are stored, as long as the session is recorded */
} sj_replay_request;

/* Prints one line per call: entry time, duration, thread (if there are several), and the function,
 * indented below its callers. Stored values of a call are behind its function. At the first call of
 * a thread, prints the calls that were open then. Prints a line for each gap. Calls of several
 * threads are merged by time. Memory grows with the number of threads that run in the window, not
 * with the number of calls.
 * | Blocks on the database. With `follow`, blocks until the session ends or the output is closed.
 * Fails with SJ_ENOTFOUND if the thread or a call does not exist, and with SJ_EIO or SJ_ENOMEM. One
 * thread at a time.
 */
SJ_MUST_CHECK sj_status sj_replay_print(sqlite3 *database, const sj_replay_request *request,
                                        const sj_terminal *terminal, sj_error *error);

#endif
