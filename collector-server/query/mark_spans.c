#include "collector-server/query/mark_spans.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "schema/queries/query/mark_spans.h"

#include <stdlib.h>

int sj_mark_spans_open(sj_mark_spans *marks, sqlite3 *database)
{
    return sqlite3_prepare_v3(database, sj_mark_spans_spans_sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &marks->read, NULL);
}

void sj_mark_spans_close(sj_mark_spans *marks)
{
    sqlite3_finalize(marks->read);
    free(marks->spans);
    *marks = (sj_mark_spans){0};
}

static int add_span(void *context, sqlite3_stmt *row)
{
    sj_mark_spans *marks = context;
    if (sj_array_reserve(&marks->spans, &marks->capacity, marks->count, 1, sizeof(*marks->spans)) !=
        SJ_OK) {
        return SQLITE_NOMEM;
    }
    const int64_t to_ns = sqlite3_column_int64(row, 2);
    const int64_t before = marks->count != 0 ? marks->spans[marks->count - 1].last_to_ns : to_ns;
    marks->spans[marks->count++] = (sj_mark_span){.mark_id = sqlite3_column_int64(row, 0),
                                                  .from_ns = sqlite3_column_int64(row, 1),
                                                  .to_ns = to_ns,
                                                  .last_to_ns = to_ns > before ? to_ns : before};
    return SQLITE_OK;
}

int sj_mark_spans_enter(sj_mark_spans *marks, int64_t session_id)
{
    if (marks->is_of_session && marks->session_id == session_id) {
        return SQLITE_OK;
    }
    marks->count = 0;
    sqlite3_bind_int64(marks->read, 1, session_id);
    const int result = sj_sql_scan(marks->read, add_span, marks);
    marks->session_id = session_id;
    marks->is_of_session = result == SQLITE_OK;
    return result;
}

/* Returns the number of phases that begin at or before `ns`. */
static size_t count_begun(const sj_mark_spans *marks, int64_t ns)
{
    return SJ_BISECT(0, marks->count, i, marks->spans[i].from_ns <= ns);
}

int64_t sj_mark_spans_at(const sj_mark_spans *marks, int64_t ns, int64_t *until_ns)
{
    size_t begun = count_begun(marks, ns);
    *until_ns = begun < marks->count ? marks->spans[begun].from_ns : INT64_MAX;
    for (; begun != 0 && marks->spans[begun - 1].last_to_ns > ns; --begun) {
        const sj_mark_span *span = &marks->spans[begun - 1];
        if (span->to_ns > ns) {
            *until_ns = span->to_ns < *until_ns ? span->to_ns : *until_ns;
            return span->mark_id;
        }
    }
    return SJ_NO_MARK;
}
