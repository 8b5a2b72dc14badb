/* What a lab gives to a cluster: a row for each table, with its columns and the query that yields
 * the rows of one session. Keys hold across labs: uuids, build-ids with offsets, hashes of names.
 */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TABLES_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_TABLES_H

#include "collector-server/forward/function_keys.h"
#include "collector-server/forward/native_rows.h"
#include "collector-server/query/tick_scale.h"

#include <sqlite3.h>

typedef enum sj_forward_kind {
    SJ_FORWARD_TEXT,
    SJ_FORWARD_UUID,      /* a blob of 16 bytes, as 32 digits */
    SJ_FORWARD_HEX,       /* a blob of any length, as digits */
    SJ_FORWARD_SMALL,     /* UInt8 */
    SJ_FORWARD_COUNT,     /* UInt64; also keys, whose 64 bits SQLite has as signed ones */
    SJ_FORWARD_NUMBER,    /* Int64 */
    SJ_FORWARD_MAYBE,     /* Int64 or NULL */
    SJ_FORWARD_HISTOGRAM, /* of ticks: two arrays, bins (of ns) and what is in them */
    /* The query gives the id of a call path, and there is its key. */
    SJ_FORWARD_PATH,
    /* The query gives a function's id or NULL for a key, and there is what is known of it: the key,
     * and with no column of the query what follows behind it. */
    SJ_FORWARD_KEY,
    SJ_FORWARD_SYMBOL,
    SJ_FORWARD_NAME,
    SJ_FORWARD_BUILD,
    SJ_FORWARD_OFFSET,
    SJ_FORWARD_MODULE
} sj_forward_kind;

typedef struct sj_forward_column {
    const char *name; /* NULL ends the list; a histogram is named `bins` and `counts` there */
    sj_forward_kind kind;
} sj_forward_column;

typedef struct sj_forward_table {
    const char *name;
    const char *owner;  /* whose rows they are, and lie together: "session" or "lab" */
    const char *order;  /* of the rows in a part, behind owner and version */
    bool is_replacing;  /* not by version: a row takes the place of that of the same `order` */
    const char *select; /* ?1: the session; ?2: tables that are left out (forward_choice.h); columns
                           as follow */
    sj_forward_column columns[SJ_NATIVE_COLUMNS];
} sj_forward_table;

enum { SJ_FORWARD_MOST_TABLES = 32 };

/* sj_forward_tables lists them. The last is `sessions`: a session's rows are seen from the moment
 * on that its row there is. */
extern const sj_forward_table sj_forward_tables[];
extern const size_t sj_forward_table_count;

/* Sessions that were removed, and why: a view of the rows of `sessions` that say so. */
extern const sj_forward_table sj_forward_removals;

/* The audit of commands, rows of the lab: ?1 is a command_id, of one that may be gone. */
extern const sj_forward_table sj_forward_commands;

/* Single calls, of the windows that people ask for: ?2 and ?3 bound when they began. */
extern const sj_forward_table sj_forward_calls;

/* What every row begins with. */
typedef struct sj_forward_place {
    uint8_t owner[SJ_NATIVE_OWNER_BYTES]; /* digits of the session, or of the lab */
    uint64_t version;
    uint16_t day; /* since 1970, when the session began, or the command was given: by month the
                     cluster keeps its parts */
    sj_tick_scale scale;
    sj_function_keys *functions; /* with the paths of the session */
} sj_forward_place;

/* sj_forward_place_own takes the 16 bytes of the session, or of the lab. */
void sj_forward_place_own(sj_forward_place *place, const uint8_t owner[16]);

/* sj_forward_prepare prepares the query of a table; the caller finalizes it. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_forward_prepare(sqlite3 *database, const sj_forward_table *table,
                                           sqlite3_stmt **statement, sj_error *error);

/* sj_forward_collect appends the rows of one session, or the row of one command. SJ_ECORRUPT: a
 * histogram cannot be read; SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_forward_collect(sqlite3_stmt *statement, const sj_forward_table *table,
                                           int64_t id, const sj_forward_place *place,
                                           sj_native_rows *rows, sj_error *error);

/* sj_forward_collect_row appends the row that a statement of the table is at. As above. */
SJ_MUST_CHECK sj_status sj_forward_collect_row(const sj_forward_table *table,
                                               sqlite3_stmt *statement,
                                               const sj_forward_place *place, sj_native_rows *rows);

/* sj_forward_put_removed appends the row of `sessions` that says that a session is gone, and by
 * whom or by which rule: its `cause`. */
void sj_forward_put_removed(const sj_forward_place *place, sj_slice lab, sj_slice cause,
                            sj_native_rows *rows);

#endif
