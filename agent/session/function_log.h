/* The live function.txt: a line for each entry and exit, written during the recording. The format
 * is the exporter's (collector-server/export/function_txt.c):
 *
 *   N[SECONDS,NANOSECONDS]enter:NAME tid:TID
 *   N[SECONDS,NANOSECONDS]leave:NAMEret:RESULT tid:TID, or RESULT errno:NUMBER tid:TID
 *
 * Lines are sorted by time over all threads. The events of a block wait for one or two seconds,
 * until no thread can add an earlier event (sj_function_log_advance). A block that the spool
 * refused has no lines.
 *
 * Thread-safe. */
#ifndef SJ_AGENT_SESSION_FUNCTION_LOG_H
#define SJ_AGENT_SESSION_FUNCTION_LOG_H

#include "agent/host/clock.h"
#include "proto/base/error.h"
#include "proto/block/block.h"

typedef struct sj_function_log sj_function_log;

typedef struct sj_function_log_options {
    const char *directory; /* folder for function.txt, function.1.txt ...; borrowed for the call */
    uint64_t max_bytes;    /* limit of a file; 0: none */
    uint32_t max_files;    /* number of kept files, at least 1; the oldest are deleted */
    sj_clock_pair start;   /* time at which the recording began */
} sj_function_log_options;

typedef struct sj_function_log_counters {
    uint64_t lines;
    uint64_t removed_files;
    /* lines that were dropped because memory ran out or their file could not be written */
    uint64_t unwritten_lines;
    int failure; /* errno of the write that failed; 0: none */
} sj_function_log_counters;

/* Makes the folder and its first file. Returns SJ_ENOMEM or an error of
 * sj_function_log_file_open. */
SJ_MUST_CHECK sj_status sj_function_log_open(const sj_function_log_options *options,
                                             sj_function_log **log, sj_error *error);

/* Sets the name of a function: `symbol`, which is copied. Without a symbol, the name is made of
 * `module` and `offset`. Call it before the first block that contains the function. */
void sj_function_log_name(sj_function_log *log, uint32_t function, const char *symbol,
                          const char *module, uint64_t offset);

/* Sets the thread of a stream. Call it before the stream's first block. Without this call, or if
 * memory runs out, the stream's lines have no tid. Does not block for long. */
void sj_function_log_stream(sj_function_log *log, uint32_t stream, int32_t tid);

/* Adds the events of a block that the spool accepted. The caller passes the blocks of a stream in
 * their order. */
void sj_function_log_block(sj_function_log *log, sj_slice bytes);

/* Writes the events before `ticks`. The caller guarantees that no later block has an earlier
 * event. */
void sj_function_log_advance(sj_function_log *log, uint64_t ticks);

void sj_function_log_get_counters(sj_function_log *log, sj_function_log_counters *counters);

/* Writes all remaining events and frees the log; NULL is allowed. */
void sj_function_log_close(sj_function_log *log);

#endif
