/* What threads did with their time, as the scheduler counted it: they worked, waited for a
 * processor, or waited for something else. Sums of thread_times. */
#ifndef SJ_COLLECTOR_SERVER_CLI_THREAD_SUMS_H
#define SJ_COLLECTOR_SERVER_CLI_THREAD_SUMS_H

#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/terminal.h"

/* All 0: not known. */
typedef struct sj_thread_sums {
    int64_t watched_ns;
    int64_t cpu_ns;
    int64_t ready_ns; /* waiting for a processor */
} sj_thread_sums;

/* sj_thread_sums_read adds up the threads of a session, as far as they are chosen (NULL: all).
 * Steps that lie across an end of a window count by their part in it. SJ_EIO. Blocks on the
 * database. */
SJ_MUST_CHECK sj_status sj_thread_sums_read(sqlite3 *database, int64_t session_id,
                                            const sj_call_choice *choice, sj_thread_sums *sums,
                                            sj_error *error);

/* sj_thread_sums_line writes one line about the sums; empty when they are not known, or of a time
 * so short that they say nothing. */
enum { SJ_THREAD_SUMS_BYTES = 200 };
void sj_thread_sums_line(const sj_thread_sums *sums, char line[SJ_THREAD_SUMS_BYTES]);

/* sj_thread_sums_print prints a blank line and a table of the threads that worked most, and how
 * many more there are; nothing when none was watched. As sj_thread_sums_read. */
SJ_MUST_CHECK sj_status sj_thread_sums_print(sqlite3 *database, int64_t session_id,
                                             const sj_call_choice *choice,
                                             const sj_terminal *terminal, sj_error *error);

#endif
