#include "collector-server/cli/session_highlights.h"

#include <stdio.h>

/* prepare binds the session as ?1; NULL when the statement is not possible. */
static sqlite3_stmt *prepare(sqlite3 *database, const char *sql, int64_t session_id)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, session_id);
    return statement;
}

static int64_t read_number(sqlite3 *database, const char *sql, int64_t session_id)
{
    sqlite3_stmt *row = prepare(database, sql, session_id);
    const int64_t number =
        row != NULL && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    sqlite3_finalize(row);
    return number;
}

static void copy_name(sqlite3_stmt *row, int column, char name[SJ_HIGHLIGHT_NAME_BYTES])
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(name, SJ_HIGHLIGHT_NAME_BYTES, "%s", text != NULL ? text : "(unnamed)");
}

static void read_functions(sqlite3 *database, int64_t session_id, sj_session_highlights *highlights)
{
    sqlite3_stmt *row =
        prepare(database,
                "SELECT f.name, s.self_ns, s.calls FROM function_stats s"
                " LEFT JOIN functions f USING (function_id)"
                " WHERE s.session_id = ?1 AND s.self_ns > 0 ORDER BY s.self_ns DESC LIMIT ?2",
                session_id);
    sqlite3_bind_int(row, 2, SJ_HIGHLIGHT_FUNCTIONS);
    while (row != NULL && highlights->function_count < SJ_HIGHLIGHT_FUNCTIONS &&
           sqlite3_step(row) == SQLITE_ROW) {
        sj_highlight_function *function = &highlights->functions[highlights->function_count++];
        copy_name(row, 0, function->name);
        function->self_ns = sqlite3_column_int64(row, 1);
        function->calls = sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
    highlights->self_ns = read_number(
        database, "SELECT sum(self_ns) FROM function_stats WHERE session_id = ?1", session_id);
}

static void read_frames(sqlite3 *database, int64_t stream_id, sj_session_highlights *highlights)
{
    sqlite3_stmt *row = prepare(database,
                                "SELECT f.name, o.depth FROM open_calls o"
                                " LEFT JOIN functions f USING (function_id)"
                                " WHERE o.stream_id = ?1 ORDER BY o.depth DESC LIMIT ?2",
                                stream_id);
    sqlite3_bind_int(row, 2, SJ_HIGHLIGHT_FRAMES);
    while (row != NULL && highlights->frame_count < SJ_HIGHLIGHT_FRAMES &&
           sqlite3_step(row) == SQLITE_ROW) {
        copy_name(row, 0, highlights->frames[highlights->frame_count++]);
        highlights->deeper_frames = (uint64_t)sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
}

static void read_crash(sqlite3 *database, int64_t session_id, sj_session_highlights *highlights)
{
    sqlite3_stmt *row =
        prepare(database,
                "SELECT exit_signal, core_dumped, (SELECT o.stream_id FROM open_calls o"
                "  JOIN streams s USING (stream_id) JOIN threads t USING (thread_id)"
                "  WHERE t.session_id = ?1 AND t.process_number = p.number"
                "  ORDER BY o.start_ns DESC, o.depth DESC LIMIT 1)"
                " FROM processes p WHERE session_id = ?1 AND exit_signal IS NOT NULL"
                " ORDER BY number LIMIT 1",
                session_id);
    int64_t stream_id = 0;
    if (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
        highlights->crash_signal = sqlite3_column_int(row, 0);
        highlights->core_dumped = sqlite3_column_int(row, 1) != 0;
        stream_id = sqlite3_column_int64(row, 2);
    }
    sqlite3_finalize(row);
    if (stream_id != 0) {
        read_frames(database, stream_id, highlights);
    }
}

void sj_session_highlights_read(sqlite3 *database, int64_t session_id,
                                sj_session_highlights *highlights)
{
    *highlights = (sj_session_highlights){0};
    read_functions(database, session_id, highlights);
    read_crash(database, session_id, highlights);
    highlights->zombie_reports = (uint64_t)read_number(
        database, "SELECT count(*) FROM zombie_reports WHERE session_id = ?1", session_id);
}
