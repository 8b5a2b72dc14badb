/* The part of a session that an export writes: windows of streams, functions with all that they
 * called, and a number of levels. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H

#include "proto/base/hash_map.h"
#include "proto/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A zeroed part with a session is the whole session. Texts are borrowed. */
typedef struct sj_call_part {
    int64_t session_id;
    /* JSON array of [stream_id, from_ns, to_ns], sorted; the calls that began there. NULL: all */
    const char *selection;
    /* JSON array of function_ids; their calls and all calls below these. NULL: all */
    const char *functions;
    int64_t levels; /* of calls, from the outermost written one on; 0: all */
} sj_call_part;

/* True if the part is smaller than its session. */
bool sj_call_part_is_limited(const sj_call_part *part);

/* Prepares "SELECT `columns` FROM calls AS c `joins` WHERE ...". It reads the calls that began in
 * the part's windows and meet `condition`, which begins with AND, or is empty. They are sorted by
 * call id. The session is ?1 and the selection ?11, both bound. Returns SJ_EIO, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_part_prepare(sqlite3 *database, const sj_call_part *part,
                                             const char *columns, const char *joins,
                                             const char *condition, sqlite3_stmt **statement);

/* Binds session, selection, functions and levels to ?1 to ?4 of a statement that reads
 * call_tree(?1, ?2, ?3). */
void sj_call_part_bind_tree(const sj_call_part *part, sqlite3_stmt *statement);

/* Decides which of the calls belong to the part by function and depth. Pass calls in the order of
 * their ids. A zeroed filter is ready for sj_call_filter_open. */
typedef struct sj_call_filter {
    bool is_open;
    bool has_functions;
    int64_t levels;
    sj_hash_map functions;
    int64_t stream_id;
    int64_t root_depth; /* depth of the outermost written call; -1: none is open */
} sj_call_filter;

/* Returns SJ_EIO or SJ_ENOMEM. Close it even then. */
SJ_MUST_CHECK sj_status sj_call_filter_open(sj_call_filter *filter, sqlite3 *database,
                                            const sj_call_part *part);
void sj_call_filter_close(sj_call_filter *filter);

/* True if the call belongs to the part. */
bool sj_call_filter_passes(sj_call_filter *filter, int64_t stream_id, int64_t depth,
                           int64_t function_id);

#endif
