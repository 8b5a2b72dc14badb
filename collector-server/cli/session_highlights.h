/* The highlights of a session that was just stored: the functions with the most time, how its
 * program crashed, and the uses of freed memory. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SESSION_HIGHLIGHTS_H
#define SJ_COLLECTOR_SERVER_CLI_SESSION_HIGHLIGHTS_H

#include "collector-server/cli/unnamed_functions.h"
#include "collector-server/cli/unrecorded_code.h"
#include "collector-server/cli/zombie_coverage.h"
#include "proto/base/ids.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SJ_HIGHLIGHT_FUNCTIONS = 5, SJ_HIGHLIGHT_FRAMES = 5, SJ_HIGHLIGHT_NAME_BYTES = 160 };

typedef struct sj_highlight_function {
    char name[SJ_HIGHLIGHT_NAME_BYTES]; /* name of the function; it may hold any bytes */
    int64_t self_ns;
    int64_t calls;
    bool is_estimate; /* its self time is an estimate: calls were counted without a clock */
} sj_highlight_function;

typedef struct sj_session_highlights {
    sj_highlight_function functions[SJ_HIGHLIGHT_FUNCTIONS]; /* by self time, the highest first */
    uint32_t function_count; /* number of used elements of `functions` */
    int64_t self_ns;         /* self time of all functions */
    int crash_signal;        /* 0: no process crashed */
    bool core_dumped;
    char frames[SJ_HIGHLIGHT_FRAMES][SJ_HIGHLIGHT_NAME_BYTES]; /* open calls, the innermost first */
    uint32_t frame_count;
    uint64_t deeper_frames;  /* number of callers that do not fit into `frames` */
    uint64_t zombie_reports; /* uses of freed memory, reported in this session */
    bool was_watched;        /* freed memory was watched: `coverage` says how much of it */
    sj_zombie_coverage coverage;
    sj_unrecorded_code unrecorded;
    sj_unnamed_functions unnamed;
    uint64_t unwatched_processes; /* processes whose freed memory could not be watched */
    char not_watched[SJ_HIGHLIGHT_NAME_BYTES]; /* why one of these processes could not be watched */
} sj_session_highlights;

/* Reads the highlights. `arguments` is the program's command line, NULL-terminated; NULL: it was
 * not started by this command. `frames` is the stack of one thread of the crashed process: of the
 * thread that entered a function last. Returns the errors of sj_sql_each; members that were not
 * read are then 0. */
SJ_MUST_CHECK sj_status sj_session_highlights_read(sqlite3 *database, int64_t session_id,
                                                   char *const *arguments,
                                                   sj_session_highlights *highlights,
                                                   sj_error *error);

#endif
