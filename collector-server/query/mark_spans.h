/* Mark spans: the phases of a session. A phase lasts from a begin mark to the first end mark of the
 * same name after it. Without an end mark, the phase lasts to the end of the session. Where phases
 * overlap, the one that began last counts. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_MARK_SPANS_H
#define SJ_COLLECTOR_SERVER_QUERY_MARK_SPANS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SJ_NO_MARK INT64_MIN

typedef struct sj_mark_span {
    int64_t mark_id;        /* id of the begin mark */
    int64_t from_ns, to_ns; /* [from, to) */
    int64_t last_to_ns;     /* the greatest `to_ns` of this and all earlier spans */
} sj_mark_span;

/* All zero: empty and not open. */
typedef struct sj_mark_spans {
    sqlite3_stmt *read;
    bool is_of_session; /* `spans` are the phases of `session_id` */
    int64_t session_id;
    sj_mark_span *spans; /* sorted by `from_ns` */
    size_t count, capacity;
} sj_mark_spans;

/* sj_mark_spans_open prepares the statement. sj_mark_spans_close frees everything; it is safe on
 * zeroed spans. sj_mark_spans_enter reads the phases of a session, unless they are in memory
 * already. Both open and enter return SQLite result codes. */
int sj_mark_spans_open(sj_mark_spans *marks, sqlite3 *database);
void sj_mark_spans_close(sj_mark_spans *marks);
int sj_mark_spans_enter(sj_mark_spans *marks, int64_t session_id);

/* Returns the mark_id of the phase at the time `ns`, SJ_NO_MARK if there is none. Writes to
 * `*until_ns` the time, after `ns`, at which the result may change. */
int64_t sj_mark_spans_at(const sj_mark_spans *marks, int64_t ns, int64_t *until_ns);

#endif
