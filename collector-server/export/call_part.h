/* The part of a session that an exporter writes. It is limited by windows of streams, by functions
 * and by the number of levels. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H
#define SJ_COLLECTOR_SERVER_EXPORT_CALL_PART_H

#include "proto/base/hash_map.h"
#include "proto/base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* If only session_id is set, the part is the whole session. Texts are borrowed. */
typedef struct sj_call_part {
    int64_t session_id;
    /* JSON array of [stream_id, from_ns, to_ns], sorted: calls that began in such a window. NULL:
     * all */
    const char *selection;
    /* JSON array of function_ids: calls of these functions, and all calls below. NULL: all */
    const char *functions;
    int64_t levels; /* number of levels below and including the outermost written call; 0: all */
} sj_call_part;

/* True unless the part is the whole session. */
bool sj_call_part_is_limited(const sj_call_part *part);

/* Prepares "SELECT `columns` FROM calls AS c `joins` WHERE ...", and binds ?1 and ?11. The
 * statement reads the calls that began in the part's windows, sorted by call id. `condition` is ""
 * or begins with AND. Functions and levels are left to an sj_call_filter. Fails with SJ_EIO or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_part_prepare(sqlite3 *database, const sj_call_part *part,
                                             const char *columns, const char *joins,
                                             const char *condition, sqlite3_stmt **statement);

/* Binds session, selection, functions and levels to ?1 to ?4 of a statement that reads
 * call_tree(?1, ?2, ?3). */
void sj_call_part_bind_tree(const sj_call_part *part, sqlite3_stmt *statement);

/* Decides which calls belong to the part, by functions and levels. */
typedef struct sj_call_filter {
    bool is_open;
    bool has_functions;
    int64_t levels;
    sj_hash_map functions;
    int64_t stream_id;
    int64_t root_depth; /* depth of the outermost written call; -1: none is open */
} sj_call_filter;

/* Initializes a filter. Close the filter even if this fails. Fails with SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_filter_open(sj_call_filter *filter, sqlite3 *database,
                                            const sj_call_part *part);
void sj_call_filter_close(sj_call_filter *filter);

/* True if the call belongs to the part. Pass all calls of the part's windows, in the order of their
 * ids. */
bool sj_call_filter_passes(sj_call_filter *filter, int64_t stream_id, int64_t depth,
                           int64_t function_id);

#endif
