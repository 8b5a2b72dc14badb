/* Divides the time of functions and call paths into working (the thread was on a processor) and
 * waiting (the thread was not on a processor).
 *
 * If the CPU time of a function was measured (record --cpu-time), both parts are exact. For other
 * calls both parts are lower bounds, so their sum may be less than the time of the call. They
 * follow from the scheduler's counts for the thread, in steps of about 20 ms (wait_steps.h). So
 * calls shorter than two steps are not divided. */
#ifndef SJ_COLLECTOR_SERVER_CLI_WAITS_H
#define SJ_COLLECTOR_SERVER_CLI_WAITS_H

#include "collector-server/cli/call_choice.h"

#define SJ_WAITS_LEAST_NS INT64_C(40000000) /* shorter calls are not divided */

typedef struct sj_waits sj_waits;

typedef struct sj_waits_parts {
    int64_t working_ns;
    int64_t waiting_ns; /* includes waiting for a processor */
} sj_waits_parts;

/* Divides the chosen calls of a session (NULL: all) that last SJ_WAITS_LEAST_NS or longer. Fails
 * with SJ_EIO or SJ_ENOMEM, and with SJ_ELIMIT if there are too many calls. Blocks on the
 * database. */
SJ_MUST_CHECK sj_status sj_waits_read(sqlite3 *database, int64_t session_id,
                                      const sj_call_choice *choice, sj_waits **waits,
                                      sj_error *error);
void sj_waits_free(sj_waits *waits); /* safe on NULL */

/* Adds the SQL functions working_ns(function_id) and waiting_ns(function_id) to the connection.
 * They return the sums over all divided calls of a function; a call inside a call of the same
 * function is not counted twice. They return NULL if no call was divided. `waits` must live as long
 * as statements use the functions. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_waits_register(sqlite3 *database, const sj_waits *waits,
                                          sj_error *error);

enum { SJ_WAITS_DEPTH = 512 };

/* The state of a loop over call paths in depth-first order. Initialization is not needed. */
typedef struct sj_waits_walk {
    uint32_t nodes[SJ_WAITS_DEPTH];
} sj_waits_walk;

/* Writes the parts of the next path of the loop to `*parts`. The path has the depth `depth` (0: a
 * root); its caller is the latest path of the loop at `depth` - 1. Returns false if no call of the
 * path was divided, or if `depth` is SJ_WAITS_DEPTH or more. */
bool sj_waits_enter(const sj_waits *waits, sj_waits_walk *walk, int64_t depth, int64_t function_id,
                    sj_waits_parts *parts);

#endif
