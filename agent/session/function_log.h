/* The live function.txt: a line for each entry and exit of a recording, while it goes on, as the
 * exporter of that name writes them from the store (collector-server/export/function_txt.c):
 *
 *   N[SECONDS,NANOSECONDS]enter:NAME tid:TID
 *   N[SECONDS,NANOSECONDS]leave:NAMEret:RESULT tid:TID, or RESULT errno:NUMBER tid:TID
 *
 * Lines come in the order of time across threads. What a block holds waits until blocks of all
 * threads have come for its time: a second or two. A block that the spool refused has no lines.
 *
 * Any thread. */
#ifndef SJ_AGENT_SESSION_FUNCTION_LOG_H
#define SJ_AGENT_SESSION_FUNCTION_LOG_H

#include "agent/host/clock.h"
#include "proto/base/error.h"
#include "proto/block/block.h"

typedef struct sj_function_log sj_function_log;

typedef struct sj_function_log_options {
    const char *directory; /* gets function.txt, function.1.txt ...; borrowed for the call */
    uint64_t max_bytes;    /* of a file; 0: no limit */
    uint32_t max_files;    /* kept, at least 1; the oldest go */
    sj_clock_pair start;   /* when the recording began */
} sj_function_log_options;

typedef struct sj_function_log_counters {
    uint64_t lines;
    uint64_t removed_files;
    uint64_t unwritten_lines; /* that found no memory, or whose file could not be written */
    int failure;              /* errno of the write that failed; 0: none */
} sj_function_log_counters;

/* sj_function_log_open makes the directory and its first file. Errors of
 * sj_function_log_file_open, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_function_log_open(const sj_function_log_options *options,
                                             sj_function_log **log, sj_error *error);

/* sj_function_log_name gives a function its symbol (copied), before the first block that has it;
 * without symbol the name is `module` and the offset. */
void sj_function_log_name(sj_function_log *log, uint32_t function, const char *symbol,
                          const char *module, uint64_t offset);

/* sj_function_log_stream says which thread a stream belongs to, before its first block. Lines of
 * other streams name no thread. Does not block for long; if memory runs out, lines lack the thread.
 */
void sj_function_log_stream(sj_function_log *log, uint32_t stream, int32_t tid);

/* sj_function_log_block takes the events of a block that was stored. Blocks of a stream come in
 * their order. */
void sj_function_log_block(sj_function_log *log, sj_slice bytes);

/* sj_function_log_advance writes what happened before `ticks`: nothing of that time is to come. */
void sj_function_log_advance(sj_function_log *log, uint64_t ticks);

void sj_function_log_get_counters(sj_function_log *log, sj_function_log_counters *counters);

/* sj_function_log_close writes everything that is left and frees the log; NULL is allowed. */
void sj_function_log_close(sj_function_log *log);

#endif
