/* Working and waiting: how much of the time of functions and call paths their threads certainly
 * spent on a processor, and off it.
 * | For functions whose CPU time was measured (record --cpu-time), both parts are known. For other
 * calls they follow from the scheduler's counts of the thread, in steps of about 20 ms
 * (thread_times). A call waited at least for the part of a step's waiting time that does not fit
 * into the rest of the step. So only calls longer than a step or two are divided, and both parts
 * are lower bounds.
 */
#ifndef SJ_COLLECTOR_SERVER_CLI_WAITS_H
#define SJ_COLLECTOR_SERVER_CLI_WAITS_H

#include "collector-server/cli/call_choice.h"

#define SJ_WAITS_LEAST_NS INT64_C(40000000) /* shorter calls are not divided */

typedef struct sj_waits sj_waits;

typedef struct sj_waits_parts {
    int64_t working_ns;
    int64_t waiting_ns; /* includes waiting for a processor */
} sj_waits_parts;

/* Divides the chosen long calls of a session (NULL: all). Fails with SJ_EIO or SJ_ENOMEM, and with
 * SJ_ELIMIT if there are too many. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_waits_read(sqlite3 *database, int64_t session_id,
                                      const sj_call_choice *choice, sj_waits **waits,
                                      sj_error *error);
void sj_waits_free(sj_waits *waits); /* safe on NULL */

/* Adds working_ns(function_id) and waiting_ns(function_id) to the connection. They cover all calls
 * of a function; nested calls count once. They return NULL if nothing is known. `waits` must live
 * as long as statements use them. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_waits_register(sqlite3 *database, const sj_waits *waits,
                                          sj_error *error);

/* A depth-first walk through call paths. */
enum { SJ_WAITS_DEPTH = 512 };
typedef struct sj_waits_walk {
    uint32_t nodes[SJ_WAITS_DEPTH];
} sj_waits_walk;

/* Returns in `*parts` the parts of the next path of the walk. The path is at `depth`; its caller is
 * the latest path at the depth above. Returns false if nothing is known of the path, or if it is
 * deeper than SJ_WAITS_DEPTH. */
bool sj_waits_enter(const sj_waits *waits, sj_waits_walk *walk, int64_t depth, int64_t function_id,
                    sj_waits_parts *parts);

#endif
