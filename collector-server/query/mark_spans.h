/* Mark spans: the phases of a session, from its marks, and the phase at a time.
 *
 * A phase lasts from its begin to the first end of the same name, or without one to the end. Where
 * phases overlap, the one that began last counts. */
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

/* All zero: empty and not open. */
typedef struct sj_mark_spans {
    sqlite3_stmt *read;
    bool is_of_session; /* `spans` are those of `session_id` */
    int64_t session_id;
    sj_mark_span *spans; /* sorted by `from_ns` */
    size_t count, capacity;
} sj_mark_spans;

/* sj_mark_spans_open prepares. sj_mark_spans_close frees everything, safe on a zeroed one.
 * sj_mark_spans_enter reads the phases of a session unless they are loaded. Return SQLite result
 * codes. */
int sj_mark_spans_open(sj_mark_spans *marks, sqlite3 *database);
void sj_mark_spans_close(sj_mark_spans *marks);
int sj_mark_spans_enter(sj_mark_spans *marks, int64_t session_id);

/* Returns the mark_id of the phase at a time, or SJ_NO_MARK. All times up to `*until_ns` are in the
 * same phase. */
int64_t sj_mark_spans_at(const sj_mark_spans *marks, int64_t ns, int64_t *until_ns);

#endif
