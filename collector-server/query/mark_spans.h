/* The phases of a session, from its marks: which of them a moment lies in.
 *
 * A phase lasts from its begin to the first end of its name, without one for ever. Where phases
 * overlap, a moment is in the one that began last. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_MARK_SPANS_H
#define SJ_COLLECTOR_SERVER_QUERY_MARK_SPANS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SJ_NO_MARK INT64_MIN

typedef struct sj_mark_span {
    int64_t mark_id;
    int64_t from_ns, to_ns; /* [from, to) */
    int64_t last_to_ns;     /* the greatest `to_ns` up to this span */
} sj_mark_span;

/* Zeroed is empty and unopened. */
typedef struct sj_mark_spans {
    sqlite3_stmt *read;
    bool is_of_session; /* `spans` are those of `session_id` */
    int64_t session_id;
    sj_mark_span *spans; /* by rising `from_ns` */
    size_t count, capacity;
} sj_mark_spans;

/* sj_mark_spans_open prepares; sj_mark_spans_close frees all, safe on a zeroed one.
 * sj_mark_spans_enter reads the phases of a session unless it has them. SQLite results. */
int sj_mark_spans_open(sj_mark_spans *marks, sqlite3 *database);
void sj_mark_spans_close(sj_mark_spans *marks);
int sj_mark_spans_enter(sj_mark_spans *marks, int64_t session_id);

/* sj_mark_spans_at returns the mark_id of the phase that a moment lies in, or SJ_NO_MARK; the
 * moments up to `*until_ns` lie in the same. */
int64_t sj_mark_spans_at(const sj_mark_spans *marks, int64_t ns, int64_t *until_ns);

#endif
