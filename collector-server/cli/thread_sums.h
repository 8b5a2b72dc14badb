/* How long threads worked, waited for a processor, or waited for something else, as the kernel's
 * scheduler counted it. Each row of the table thread_times has the counts of one thread for a short
 * time, a step. */
#ifndef SJ_COLLECTOR_SERVER_CLI_THREAD_SUMS_H
#define SJ_COLLECTOR_SERVER_CLI_THREAD_SUMS_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/terminal.h"

/* Sums over threads. If all members are 0, the sums are unknown. */
typedef struct sj_thread_sums {
    int64_t watched_ns; /* total length of the steps, with the time of waiting for something else */
    int64_t cpu_ns;     /* time on a processor */
    int64_t ready_ns;   /* time waiting for a processor */
} sj_thread_sums;

/* Reads the sums over all threads of a session. `choice` limits the threads and times (NULL: no
 * limit). If only a part of a step is inside the chosen time, the sums get the same part of its
 * counts. Fails with SJ_EIO. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_thread_sums_read(sqlite3 *database, int64_t session_id,
                                            const sj_call_choice *choice, sj_thread_sums *sums,
                                            sj_error *error);

/* Writes one line about the sums, without a line end. Writes "" if the sums are unknown or
 * watched_ns is too short to be meaningful. */
enum { SJ_THREAD_SUMS_BYTES = 200 };
void sj_thread_sums_line(const sj_thread_sums *sums, char line[SJ_THREAD_SUMS_BYTES]);

/* Prints a blank line, a table of the ten threads that worked most, and how many more threads there
 * are. Prints nothing if no thread was watched. Parameters and errors are as for
 * sj_thread_sums_read. */
SJ_MUST_CHECK sj_status sj_thread_sums_print(sqlite3 *database, int64_t session_id,
                                             const sj_call_choice *choice,
                                             const sj_terminal *terminal, sj_error *error);

#endif
