/* Late exits of one stream: how calls ended that were still open at the end of their block. Each
 * list of late exits (deferred_exits.h) is decoded once a cursor, however many blocks ask, and a
 * call that no list names is known as one that never ended. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H
#define SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H

#include "proto/base/hash_map.h"
#include "proto/callgraph/callgraph.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Exits held at most (about 60 MB); beyond, lists are searched for each question. */
enum { SJ_LATE_EXITS_MAX = 1 << 20 };

/* Zeroed is empty and unopened. One thread. */
typedef struct sj_late_exits {
    sqlite3_stmt *lists;  /* all lists of the stream, from a block on */
    sqlite3_stmt *search; /* those that may name a call in a range */
    int64_t stream_id;
    int64_t first_call; /* lists of blocks from this call on are read */
    bool started;       /* `lists` is of `stream_id` */
    bool complete;      /* every list from `first_call` on was read */
    bool full;          /* too many exits to hold */
    unsigned restarts;  /* of the stream, for an earlier block */
    size_t max_exits;   /* SJ_LATE_EXITS_MAX; less in tests */
    uint64_t lists_read;
    sj_hash_map places; /* call index: place in `exits` */
    sj_deferred_exit *exits;
    size_t count, capacity;
} sj_late_exits;

/* sj_late_exits_open prepares for questions within one statement of the user's: the database must
 * not change between them. sj_late_exits_close frees all; safe on a zeroed one. SQLite result. */
int sj_late_exits_open(sj_late_exits *late, sqlite3 *database);
void sj_late_exits_close(sj_late_exits *late);

/* sj_late_exits_find calls `found` for each of the `count` calls in `indexes` (rising, all of one
 * block of the stream) that ended in a later block. Reads only the lists that it must. SQLite
 * result; SQLITE_NOMEM. */
typedef void (*sj_late_exit_found)(void *context, size_t position, const sj_deferred_exit *leave);
int sj_late_exits_find(sj_late_exits *late, int64_t stream_id, const uint64_t *indexes,
                       size_t count, sj_late_exit_found found, void *context);

#endif
