#include "collector-server/cli/session_highlights.h"

#include "schema/queries/cli/session_highlights.h"

#include <stdio.h>

/* Reads one row of a statement into the highlights. Parameters: ?1 is the session, ?2 the maximum
 * number of rows. */
typedef void read_row(sqlite3_stmt *row, sj_session_highlights *highlights);

static void read_rows(sqlite3 *database, const char *sql, int64_t id, int most, read_row *read,
                      sj_session_highlights *highlights)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, id);
        sqlite3_bind_int(row, 2, most);
        for (int i = 0; i < most && sqlite3_step(row) == SQLITE_ROW; i++) {
            read(row, highlights);
        }
    }
    sqlite3_finalize(row);
}

static void copy_name(sqlite3_stmt *row, int column, char name[SJ_HIGHLIGHT_NAME_BYTES])
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(name, SJ_HIGHLIGHT_NAME_BYTES, "%s", text != NULL ? text : "(unnamed)");
}

static void read_function(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    sj_highlight_function *function = &highlights->functions[highlights->function_count++];
    copy_name(row, 0, function->name);
    function->self_ns = sqlite3_column_int64(row, 1);
    function->calls = sqlite3_column_int64(row, 2);
    function->is_estimate = sqlite3_column_int64(row, 3) != 0;
}

static void read_self_time(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    highlights->self_ns = sqlite3_column_int64(row, 0);
}

static void read_frame(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    copy_name(row, 0, highlights->frames[highlights->frame_count++]);
    highlights->deeper_frames = (uint64_t)sqlite3_column_int64(row, 1);
}

static void read_crash(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    highlights->crash_signal = sqlite3_column_int(row, 0);
    highlights->core_dumped = sqlite3_column_int(row, 1) != 0;
}

static void read_zombies(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    highlights->zombie_reports = (uint64_t)sqlite3_column_int64(row, 0);
}

static const char self_time_sql[] = "SELECT sum(self_ns) FROM function_stats WHERE session_id = ?1";
static const char crash_sql[] =
    "SELECT exit_signal, core_dumped FROM processes"
    " WHERE session_id = ?1 AND exit_signal IS NOT NULL ORDER BY number LIMIT 1";
static void read_unwatched(sqlite3_stmt *row, sj_session_highlights *highlights)
{
    highlights->unwatched_processes = (uint64_t)sqlite3_column_int64(row, 0);
    copy_name(row, 1, highlights->not_watched);
}

static const char unwatched_sql[] =
    "SELECT count(*), min(not_watched) FROM zombie_accounts"
    " WHERE session_id = ?1 AND not_watched <> '' HAVING count(*) <> 0";
static const char zombies_sql[] = "SELECT count(*) FROM zombie_reports WHERE session_id = ?1";

void sj_session_highlights_read(sqlite3 *database, int64_t session_id, char *const *arguments,
                                sj_session_highlights *highlights)
{
    static const struct {
        const char *sql;
        int most;
        read_row *read;
    } parts[] = {{sj_session_highlights_functions_sql, SJ_HIGHLIGHT_FUNCTIONS, read_function},
                 {self_time_sql, 1, read_self_time},
                 {crash_sql, 1, read_crash},
                 {sj_session_highlights_frames_sql, SJ_HIGHLIGHT_FRAMES, read_frame},
                 {zombies_sql, 1, read_zombies},
                 {unwatched_sql, 1, read_unwatched}};
    *highlights = (sj_session_highlights){0};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        read_rows(database, parts[i].sql, session_id, parts[i].most, parts[i].read, highlights);
    }
    sj_unrecorded_code_read(database, session_id, arguments, &highlights->unrecorded);
    sj_unnamed_functions_read(database, session_id, SJ_DPKG_FOLDER, &highlights->unnamed);
    highlights->was_watched = sj_zombie_coverage_read(database, session_id, &highlights->coverage);
}
