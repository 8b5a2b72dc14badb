/* Late exits of one stream: the ends of calls that were open at the end of their block. Each list
 * of late exits (deferred_exits.h) is decoded once per cursor, however many blocks ask. A call that
 * no list names never ended. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H
#define SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H

#include "proto/base/hash_map.h"
#include "proto/callgraph/callgraph.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Maximum number of exits in memory (about 60 MB). With more, lists are searched for each
 * question. */
enum { SJ_LATE_EXITS_MAX = 1 << 20 };

/* All zero: empty and not open. Not thread-safe. */
typedef struct sj_late_exits {
    sqlite3_stmt *lists;  /* all lists of the stream, from a block on */
    sqlite3_stmt *search; /* the lists that may name a call of a range */
    int64_t stream_id;
    int64_t first_call; /* lists of blocks from this call on are read */
    bool started;       /* `lists` is at `stream_id` */
    bool complete;      /* every list from `first_call` on was read */
    bool full;          /* too many exits for the memory */
    unsigned restarts;  /* number of restarts in this stream, for an earlier block */
    size_t max_exits;   /* SJ_LATE_EXITS_MAX; less in tests */
    uint64_t lists_read;
    sj_hash_map places; /* call index: index in `exits` */
    sj_deferred_exit *exits;
    size_t count, capacity;
} sj_late_exits;

/* sj_late_exits_open prepares for questions within one statement of the user; the database must not
 * change in between. sj_late_exits_close frees everything; safe on a zeroed one. Return SQLite
 * result codes. */
int sj_late_exits_open(sj_late_exits *late, sqlite3 *database);
void sj_late_exits_close(sj_late_exits *late);

/* Calls `found` for each of the `count` calls in `indexes` (sorted, all of one block of the stream)
 * that ended in a later block. Reads only the lists that it needs. Returns an SQLite result code or
 * SQLITE_NOMEM. */
typedef void (*sj_late_exit_found)(void *context, size_t position, const sj_deferred_exit *leave);
int sj_late_exits_find(sj_late_exits *late, int64_t stream_id, const uint64_t *indexes,
                       size_t count, sj_late_exit_found found, void *context);

#endif
