/* The tables that a lab sends to a cluster. Each has its columns and the query that yields the rows
 * of one session. Keys are the same in all labs: uuids, build-ids with offsets, hashes of names. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TABLES_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TABLES_H

#include "collector-server/forward/function_keys.h"
#include "collector-server/forward/native_rows.h"
#include "collector-server/query/tick_scale.h"

#include <sqlite3.h>

typedef enum sj_forward_kind {
    SJ_FORWARD_TEXT,
    SJ_FORWARD_UUID,  /* a blob of 16 bytes, written as 32 digits */
    SJ_FORWARD_HEX,   /* a blob of any length, written as digits */
    SJ_FORWARD_SMALL, /* UInt8 */
    /* UInt64: a count, or a key of 64 bits, which SQLite stores as a signed number */
    SJ_FORWARD_COUNT,
    SJ_FORWARD_NUMBER, /* Int64 */
    SJ_FORWARD_MAYBE,  /* Int64 or NULL */
    /* The query yields a stored histogram of ticks. It is converted to a histogram of ns, and
     * written as two arrays: the numbers of its bins (UInt16), and their counts (UInt64). */
    SJ_FORWARD_HISTOGRAM,
    /* The query yields the id of a call path. The path's key is written (function_keys.h). */
    SJ_FORWARD_PATH,
    /* The query yields a function's id or NULL. The function's key is written (function_keys.h). */
    SJ_FORWARD_KEY,
    /* Facts about the function of the latest SJ_FORWARD_KEY before. These columns have no column in
     * the query. */
    SJ_FORWARD_SYMBOL,
    SJ_FORWARD_NAME,
    SJ_FORWARD_BUILD,
    SJ_FORWARD_OFFSET,
    SJ_FORWARD_MODULE
} sj_forward_kind;

typedef struct sj_forward_column {
    const char *name; /* NULL ends the list; a histogram has the columns `bins` and `counts` */
    sj_forward_kind kind;
} sj_forward_column;

typedef struct sj_forward_table {
    const char *name;
    /* The first column: "session" or "lab". Rows of one owner are stored together. */
    const char *owner;
    const char *order; /* sort key of the cluster's table: these columns follow owner and version */
    /* Readers do not choose rows by version: a new row replaces the row with the same `order`. */
    bool is_replacing;
    /* The query. Its parameter ?1 is the session's id, ?2 the omitted tables (forward_choice.h).
     * Its columns are in the order of `columns`. */
    const char *select;
    sj_forward_column columns[SJ_NATIVE_COLUMNS];
} sj_forward_table;

enum { SJ_FORWARD_MOST_TABLES = 32 };

/* The tables, in the order of sending. The last one is `sessions`: the rows of a session are
 * visible once its row in that table has arrived. */
extern const sj_forward_table sj_forward_tables[];
extern const size_t sj_forward_table_count;

/* Sessions that were removed, and why. This is not a table of the cluster but a view of the rows of
 * `sessions` whose column `removed` is set. */
extern const sj_forward_table sj_forward_removals;

/* The audit of commands. Its rows belong to the lab, not to a session. The parameter ?1 of its
 * query is a command_id; the query has a row even if the command was deleted. */
extern const sj_forward_table sj_forward_commands;

/* Single calls of a time window that a user has chosen. The parameters ?2 and ?3 of its query are
 * the limits of the time when a call began. */
extern const sj_forward_table sj_forward_calls;

/* The values that every row begins with. */
typedef struct sj_forward_place {
    /* hexadecimal digits of the session's or the lab's uuid */
    uint8_t owner[SJ_NATIVE_OWNER_BYTES];
    uint64_t version;
    /* The day since 1970 on which the session began or the command was requested. The cluster
     * partitions rows by the month of this day. */
    uint16_t day;
    sj_tick_scale scale;
    sj_function_keys *functions; /* includes the paths of the session */
} sj_forward_place;

/* Sets the owner from the 16 bytes of the session's or the lab's uuid. */
void sj_forward_place_own(sj_forward_place *place, const uint8_t owner[16]);

/* Prepares the query of a table; the caller finalizes it. Returns SJ_EIO on failure. */
SJ_MUST_CHECK sj_status sj_forward_prepare(sqlite3 *database, const sj_forward_table *table,
                                           sqlite3_stmt **statement, sj_error *error);

/* Runs the query for `id`, a session or a command, and appends its rows to `rows`. Returns
 * SJ_ECORRUPT if a histogram cannot be read, SJ_ENOMEM, or an error of the database. */
SJ_MUST_CHECK sj_status sj_forward_collect(sqlite3_stmt *statement, const sj_forward_table *table,
                                           int64_t id, const sj_forward_place *place,
                                           sj_native_rows *rows, sj_error *error);

/* Appends the current row of the table's query to `rows`. Errors: as for sj_forward_collect. */
SJ_MUST_CHECK sj_status sj_forward_collect_row(const sj_forward_table *table,
                                               sqlite3_stmt *statement,
                                               const sj_forward_place *place, sj_native_rows *rows);

/* Appends a row of `sessions` that marks a session as removed. `cause` says who or which
 * rule removed it. */
void sj_forward_put_removed(const sj_forward_place *place, sj_slice lab, sj_slice cause,
                            sj_native_rows *rows);

#endif
