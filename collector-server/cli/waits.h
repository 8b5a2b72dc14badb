/* Working and waiting: how much of the time of functions and call paths their threads certainly
 * spent on a processor, and off it.
 *
 * Of functions whose CPU time was measured (record --cpu-time) that is known. Of other calls it
 * follows from what the scheduler counted of the thread in steps of some 20 ms (thread_times): of
 * what a step waited, a call has at least that for which the rest of the step has no room. So only
 * calls that are longer than a step or two are divided, and both parts are lower bounds. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WAITS_H
#define SJ_COLLECTOR_SERVER_CLI_WAITS_H

#include "collector-server/cli/call_choice.h"

#define SJ_WAITS_LEAST_NS INT64_C(40000000) /* shorter calls are not divided */

typedef struct sj_waits sj_waits;

typedef struct sj_waits_parts {
    int64_t working_ns;
    int64_t waiting_ns; /* for a processor, too */
} sj_waits_parts;

/* sj_waits_read divides the long calls of a session that are chosen (NULL: all). SJ_EIO, SJ_ENOMEM,
 * SJ_ELIMIT: too many of them. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_waits_read(sqlite3 *database, int64_t session_id,
                                      const sj_call_choice *choice, sj_waits **waits,
                                      sj_error *error);
void sj_waits_free(sj_waits *waits); /* safe on NULL */

/* sj_waits_register adds working_ns(function_id) and waiting_ns(function_id) to the connection, of
 * all calls of a function; nested ones count once. NULL where nothing is known. `waits` is borrowed
 * as long as statements use them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_waits_register(sqlite3 *database, const sj_waits *waits,
                                          sj_error *error);

/* A walk through call paths, depth first. */
enum { SJ_WAITS_DEPTH = 512 };
typedef struct sj_waits_walk {
    uint32_t nodes[SJ_WAITS_DEPTH];
} sj_waits_walk;

/* sj_waits_enter gives the parts of the path that comes next: at `depth`, below the one before it
 * that is less deep. False: nothing is known of it. Paths deeper than SJ_WAITS_DEPTH are not. */
bool sj_waits_enter(const sj_waits *waits, sj_waits_walk *walk, int64_t depth, int64_t function_id,
                    sj_waits_parts *parts);

#endif
