/* Late exits: the ends of calls that were open at the end of their block. The block in which such a
 * call ended lists its end (deferred_exits.h). From the second search on, one stream's exits are
 * kept in memory, so that a cursor decodes each list at most twice. A call that is in no list never
 * ended. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H
#define SJ_COLLECTOR_SERVER_QUERY_LATE_EXITS_H

#include "proto/base/hash_map.h"
#include "proto/callgraph/callgraph.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Maximum number of exits in memory (about 60 MB). If a stream has more, each search reads the
 * lists again. */
enum { SJ_LATE_EXITS_MAX = 1 << 20 };

/* All zero: empty and not open. Not thread-safe. */
typedef struct sj_late_exits {
    sqlite3_stmt *lists;  /* reads all lists of the stream, from a block on */
    sqlite3_stmt *search; /* reads the lists that may have a call of a range */
    int64_t stream_id;
    int64_t first_call; /* `lists` reads the lists of blocks whose first call is this or later */
    bool searched;      /* a search was made; the last stream's id is `searched_stream` */
    int64_t searched_stream;
    bool started;        /* `lists` reads the lists of `stream_id` */
    bool complete;       /* every list from `first_call` on was read */
    bool full;           /* the stream has more than max_exits exits */
    unsigned restarts;   /* number of restarts of `lists` in this stream, for an earlier block */
    size_t max_exits;    /* SJ_LATE_EXITS_MAX; less in tests */
    uint64_t lists_read; /* number of lists read; for tests */
    sj_hash_map places;  /* number of the call in the stream to index in `exits` */
    sj_deferred_exit *exits;
    size_t count, capacity;
} sj_late_exits;

/* sj_late_exits_open prepares the statements, and returns an SQLite result code. The database must
 * not change while `late` is open: use it within one SQL statement of the user. sj_late_exits_close
 * frees everything. It is safe on zeroed `late`. */
int sj_late_exits_open(sj_late_exits *late, sqlite3 *database);
void sj_late_exits_close(sj_late_exits *late);

/* Receives the end of the call indexes[position]. */
typedef void (*sj_late_exit_found)(void *context, size_t position, const sj_deferred_exit *leave);

/* Calls `found` for each of the calls in `indexes` that ended in a later block. `indexes` are
 * numbers of calls in the stream, sorted, all of one block. Returns an SQLite result code. */
int sj_late_exits_find(sj_late_exits *late, int64_t stream_id, const uint64_t *indexes,
                       size_t count, sj_late_exit_found found, void *context);

#endif
