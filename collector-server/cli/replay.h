/* Calls in the order in which they were entered, as text. */
#ifndef SJ_COLLECTOR_SERVER_CLI_REPLAY_H
#define SJ_COLLECTOR_SERVER_CLI_REPLAY_H

#include "collector-server/cli/terminal.h"
#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdint.h>

typedef struct sj_replay_request {
    int64_t session_id;
    const char *thread;            /* its name, tid or number; NULL: all */
    int64_t from_ns, to_ns;        /* of entries, since the session's start, inclusive */
    int64_t first_call, last_call; /* ids of calls, inclusive */
    int64_t marked_call;           /* shown with an arrow; 0: none */
    int64_t count;                 /* how many calls at most; -1: all */
    bool wide;                     /* names are not cut */
    bool json;                     /* an array of objects instead of lines */
    bool follow;                   /* as long as the session is recorded, what is stored anew */
} sj_replay_request;

/* sj_replay_print prints a line a call: when it was entered, how long it took, its thread when
 * there are several, its function below its callers; at the first call of a thread, what was open
 * then; and a line for each gap. Calls of several threads are merged by time; memory grows with the
 * number of threads that run in the window, not with calls. Values that were kept of a call stand
 * behind its function. Blocks on the database, with
 * `follow` until the session ends or nobody reads. SJ_ENOTFOUND: no such thread, or no call;
 * SJ_EIO, SJ_ENOMEM. One thread at a time. */
SJ_MUST_CHECK sj_status sj_replay_print(sqlite3 *database, const sj_replay_request *request,
                                        const sj_terminal *terminal, sj_error *error);

#endif
