/* The part of a session that an exporter writes. Windows of streams, functions and a number of
 * levels limit it. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H

#include "collector-server/store/sql.h"
#include "proto/base/hash_map.h"
#include "proto/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* If only session_id is set, the part is the whole session. Texts are borrowed. */
typedef struct sj_call_part {
    int64_t session_id;
    /* Sorted JSON array of windows [stream_id, from_ns, to_ns]. The part has only the calls that
     * began in one of them. NULL: all calls */
    const char *selection;
    /* JSON array of function_ids. The part has only the calls of these functions, and all direct
     * and indirect callees of these calls. NULL: all calls */
    const char *functions;
    int64_t levels; /* maximum depth of written calls, where an outermost written call has depth 1;
                     * 0: no limit */
} sj_call_part;

/* True unless the part is the whole session. */
bool sj_call_part_is_limited(const sj_call_part *part);

/* Prepares "SELECT `columns` FROM calls AS c `joins` WHERE ...", and binds ?1 and ?11,
 * to the session and its windows. The caller binds parameters with other numbers. The statement
 * reads the calls that began in the part's windows, sorted by call id. `condition` is ""
 * or begins with AND. The statement ignores functions and levels; an sj_call_filter checks them.
 * Fails with SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_part_prepare(sqlite3 *database, const sj_call_part *part,
                                             const char *columns, const char *joins,
                                             const char *condition, sqlite3_stmt **statement);

/* Returns session, selection, functions and levels as ?1 to ?4 of a statement that reads
 * call_tree(?1, ?2, ?3). They borrow the part. */
sj_sql_binds sj_call_part_tree_binds(const sj_call_part *part);

/* Decides which calls belong to the part, by functions and levels. */
typedef struct sj_call_filter {
    bool is_open;
    bool has_functions;
    int64_t levels;
    sj_hash_map functions;
    int64_t stream_id;
    int64_t root_depth; /* depth of the outermost written call; -1: none is open */
} sj_call_filter;

/* Initializes a filter. Close the filter even if this fails. Fails as sj_sql_each. */
SJ_MUST_CHECK sj_status sj_call_filter_open(sj_call_filter *filter, sqlite3 *database,
                                            const sj_call_part *part);
void sj_call_filter_close(sj_call_filter *filter);

/* True if the call belongs to the part. Call it for all calls of the part's windows, in the order
 * of their ids, because it remembers the outermost written call. */
bool sj_call_filter_passes(sj_call_filter *filter, int64_t stream_id, int64_t depth,
                           int64_t function_id);

#endif
