#include "collector-server/cli/first_look.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/store/database.h"

#include <string.h>

enum { FUNCTIONS = 5, INNERMOST = 4, LABEL = 13, SHARE = 8, LEAST_NAME = 20 };

typedef struct look {
    FILE *file;
    sqlite3 *database;
    int64_t session_id;
    int lines;   /* that may follow */
    int columns; /* of the terminal; 0: any */
} look;

static sqlite3_stmt *prepare(const look *at, const char *sql)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(at->database, sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, at->session_id);
    }
    return row; /* NULL steps to no row */
}

static const char *fit_name(const look *at, sqlite3_stmt *row, int column, int used,
                            char name[SJ_FUNCTION_NAME_BYTES])
{
    const char *known = (const char *)sqlite3_column_text(row, column);
    const int room = at->columns - used;
    return sj_function_name_fit(known != NULL ? known : "(unknown function)",
                                at->columns == 0    ? 0
                                : room < LEAST_NAME ? LEAST_NAME
                                                    : room,
                                name);
}

/* The innermost open calls of the thread that entered a function last, in the process that a signal
 * killed. */
static const char open_sql[] =
    "WITH killed AS (SELECT number FROM processes WHERE session_id = ?1 AND exit_signal > 0 "
    "ORDER BY number LIMIT 1), "
    "last AS (SELECT o.stream_id FROM open_calls AS o JOIN streams AS s USING (stream_id) "
    "JOIN threads AS t USING (thread_id) WHERE s.session_id = ?1 AND t.process_number = "
    "(SELECT number FROM killed) ORDER BY o.start_ns DESC, o.depth DESC LIMIT 1) "
    "SELECT f.name FROM open_calls AS o LEFT JOIN functions AS f USING (function_id) "
    "WHERE o.stream_id = (SELECT stream_id FROM last) ORDER BY o.depth DESC";

static void print_crash(look *at)
{
    sqlite3_stmt *process = prepare(
        at, "SELECT exit_signal, core_dumped, pid FROM processes WHERE session_id = ?1 "
            "AND exit_signal > 0 ORDER BY number LIMIT 1");
    if (sqlite3_step(process) == SQLITE_ROW && at->lines > 0) {
        const int number = sqlite3_column_int(process, 0);
        const char *text = strsignal(number);
        char name[SJ_FUNCTION_NAME_BYTES];
        fprintf(at->file, "  ended by   signal %d (%s)%s", number, text != NULL ? text : "unknown",
                sqlite3_column_int(process, 1) != 0 ? ", core dumped" : "");
        sqlite3_stmt *call = prepare(at, open_sql);
        int shown = 0;
        while (sqlite3_step(call) == SQLITE_ROW && shown <= INNERMOST) {
            const char *before = shown == 0 ? "; open were " : " < ";
            shown++;
            fprintf(at->file, "%s%s", before,
                    shown > INNERMOST ? "..." : fit_name(at, call, 0, LABEL, name));
        }
        sqlite3_finalize(call);
        fputc('\n', at->file);
        at->lines--;
    }
    sqlite3_finalize(process);
}

static void print_functions(look *at)
{
    sqlite3_stmt *row =
        prepare(at, "SELECT f.name, 100.0 * s.self_ns / (SELECT sum(self_ns) FROM function_stats "
                    "WHERE session_id = ?1) FROM function_stats AS s LEFT JOIN functions AS f "
                    "USING (function_id) WHERE s.session_id = ?1 AND s.self_ns > 0 "
                    "ORDER BY s.self_ns DESC, s.function_id LIMIT ?2");
    const int most = at->lines - 1 < FUNCTIONS ? at->lines - 1 : FUNCTIONS;
    const char *label = "self time";
    char name[SJ_FUNCTION_NAME_BYTES];
    sqlite3_bind_int(row, 2, most > 0 ? most : 0);
    while (sqlite3_step(row) == SQLITE_ROW) {
        fprintf(at->file, "  %-9s  %5.1f %%  %s\n", label, sqlite3_column_double(row, 1),
                fit_name(at, row, 0, LABEL + SHARE + 1, name));
        label = "";
        at->lines--;
    }
    sqlite3_finalize(row);
}

void sj_first_look_print(FILE *file, const char *path, const sj_session_id *session, int lines,
                         int columns)
{
    look at = {.file = file, .lines = lines, .columns = columns};
    sj_error ignored;
    if (sj_database_open(path, SJ_DATABASE_READ, &at.database, &ignored) != SJ_OK) {
        return;
    }
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(at.database, "SELECT session_id FROM sessions WHERE uuid = ?1", -1, &row,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_blob(row, 1, session->bytes, sizeof(session->bytes), SQLITE_STATIC);
    }
    if (sqlite3_step(row) == SQLITE_ROW) {
        at.session_id = sqlite3_column_int64(row, 0);
    }
    sqlite3_finalize(row);
    if (at.session_id != 0) {
        print_crash(&at);
        print_functions(&at);
        if (at.lines > 0) {
            fprintf(file, "  next       sojourn report %s, or tree, replay, ui\n", path);
        }
    }
    sqlite3_close(at.database);
}
