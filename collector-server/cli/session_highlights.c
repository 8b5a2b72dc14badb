#include "collector-server/cli/session_highlights.h"

#include "collector-server/store/sql.h"
#include "schema/queries/cli/session_highlights.h"

#include <stdio.h>

static void copy_name(sqlite3_stmt *row, int column, char name[SJ_HIGHLIGHT_NAME_BYTES])
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(name, SJ_HIGHLIGHT_NAME_BYTES, "%s", text != NULL ? text : "(unnamed)");
}

static sj_status read_function(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    sj_highlight_function *function = &highlights->functions[highlights->function_count++];
    copy_name(row, 0, function->name);
    function->self_ns = sqlite3_column_int64(row, 1);
    function->calls = sqlite3_column_int64(row, 2);
    function->is_estimate = sqlite3_column_int64(row, 3) != 0;
    return SJ_OK;
}

static sj_status read_self_time(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    highlights->self_ns = sqlite3_column_int64(row, 0);
    return SJ_OK;
}

static sj_status read_frame(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    copy_name(row, 0, highlights->frames[highlights->frame_count++]);
    highlights->deeper_frames = (uint64_t)sqlite3_column_int64(row, 1);
    return SJ_OK;
}

static sj_status read_crash(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    highlights->crash_signal = sqlite3_column_int(row, 0);
    highlights->core_dumped = sqlite3_column_int(row, 1) != 0;
    return SJ_OK;
}

static sj_status read_zombies(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    highlights->zombie_reports = (uint64_t)sqlite3_column_int64(row, 0);
    return SJ_OK;
}

static const char self_time_sql[] = "SELECT sum(self_ns) FROM function_stats WHERE session_id = ?1";
static const char crash_sql[] =
    "SELECT exit_signal, core_dumped FROM processes"
    " WHERE session_id = ?1 AND exit_signal IS NOT NULL ORDER BY number LIMIT 1";
static sj_status read_unwatched(void *context, sqlite3_stmt *row)
{
    sj_session_highlights *highlights = context;
    highlights->unwatched_processes = (uint64_t)sqlite3_column_int64(row, 0);
    copy_name(row, 1, highlights->not_watched);
    return SJ_OK;
}

static const char unwatched_sql[] =
    "SELECT count(*), min(not_watched) FROM zombie_accounts"
    " WHERE session_id = ?1 AND not_watched <> '' HAVING count(*) <> 0";
static const char zombies_sql[] = "SELECT count(*) FROM zombie_reports WHERE session_id = ?1";

sj_status sj_session_highlights_read(sqlite3 *database, int64_t session_id, char *const *arguments,
                                     sj_session_highlights *highlights, sj_error *error)
{
    static const struct {
        const char *sql;
        size_t binds;
        int64_t most;
        sj_sql_row_reader *read;
    } parts[] = {{sj_session_highlights_functions_sql, 2, SJ_HIGHLIGHT_FUNCTIONS, read_function},
                 {self_time_sql, 1, 1, read_self_time},
                 {crash_sql, 1, 1, read_crash},
                 {sj_session_highlights_frames_sql, 2, SJ_HIGHLIGHT_FRAMES, read_frame},
                 {zombies_sql, 1, 1, read_zombies},
                 {unwatched_sql, 1, 1, read_unwatched}};
    *highlights = (sj_session_highlights){0};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        sj_sql_binds binds = SJ_SQL_INTS(session_id, parts[i].most);
        binds.count = parts[i].binds;
        SJ_TRY(sj_sql_each(database, parts[i].sql, binds, parts[i].read, highlights, error));
    }
    SJ_TRY(
        sj_unrecorded_code_read(database, session_id, arguments, &highlights->unrecorded, error));
    SJ_TRY(sj_unnamed_functions_read(database, session_id, SJ_DPKG_FOLDER, &highlights->unnamed,
                                     error));
    highlights->was_watched = sj_zombie_coverage_read(database, session_id, &highlights->coverage);
    return SJ_OK;
}
