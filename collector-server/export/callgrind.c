/* callgrind: costs of functions and of their callees, for KCachegrind and callgrind_annotate
 * (https://valgrind.org/docs/manual/cl-format.html). Costs are nanoseconds. The cost of a function
 * is the time in its calls without their callees. The cost of a callee is the total time of the
 * calls that this function made to it. A function whose line is not known has line 0. The format
 * cannot hold single calls, nor the number of calls that have no recorded caller. */
#include "schema/queries/export/callgrind.h"
#include "collector-server/export/clean_name.h"
#include "collector-server/export/exporter.h"
#include "collector-server/store/sql.h"

#include <inttypes.h>

static void write_name(FILE *output, const char *name)
{
    sj_write_in_line(output, name != NULL ? name : "");
    fputc('\n', output);
}

/* Writes object, file and name of a function: the columns `first` to `first` + 2. */
static void write_position(FILE *output, bool is_callee, sqlite3_stmt *row, int first)
{
    static const char *const keys[] = {"ob=", "fl=", "fn="};
    static const char *const callee_keys[] = {"cob=", "cfi=", "cfn="};
    for (int i = 0; i < 3; i++) {
        const char *name = (const char *)sqlite3_column_text(row, first + i);
        fputs(is_callee ? callee_keys[i] : keys[i], output);
        write_name(output, name != NULL && *name != '\0' ? name : "(unknown)");
    }
}

enum {
    CALLER_ID,
    CALLER_OBJECT,
    CALLER_FILE,
    CALLER_NAME,
    CALLER_LINE,
    CALLER_SELF,
    CALLEE_OBJECT,
    CALLEE_FILE,
    CALLEE_NAME,
    CALLEE_LINE,
    EDGE_CALLS,
    EDGE_NS
};

typedef struct row_writer {
    FILE *output;
    int64_t function_id; /* the last row has it; -1 before the first row */
} row_writer;

static sj_status write_row(void *context, sqlite3_stmt *row)
{
    row_writer *writer = context;
    FILE *output = writer->output;
    const bool is_new = sqlite3_column_int64(row, CALLER_ID) != writer->function_id;
    writer->function_id = sqlite3_column_int64(row, CALLER_ID);
    const int64_t line = sqlite3_column_int64(row, CALLER_LINE);
    if (is_new) {
        fputc('\n', output);
        write_position(output, false, row, CALLER_OBJECT);
        fprintf(output, "%" PRId64 " %" PRId64 "\n", line,
                (int64_t)sqlite3_column_int64(row, CALLER_SELF));
    }
    if (sqlite3_column_type(row, EDGE_CALLS) != SQLITE_NULL) {
        write_position(output, true, row, CALLEE_OBJECT);
        fprintf(output, "calls=%" PRId64 " %" PRId64 "\n%" PRId64 " %" PRId64 "\n",
                (int64_t)sqlite3_column_int64(row, EDGE_CALLS),
                (int64_t)sqlite3_column_int64(row, CALLEE_LINE), line,
                (int64_t)sqlite3_column_int64(row, EDGE_NS));
    }
    return SJ_OK;
}

static sj_status write_session(void *output, sqlite3_stmt *row)
{
    write_name(output, (const char *)sqlite3_column_text(row, 0));
    fprintf(output, "positions: line\nevent: ns : Nanoseconds\nevents: ns\nsummary: %" PRId64 "\n",
            (int64_t)sqlite3_column_int64(row, 1));
    return SJ_OK;
}

static sj_status write_callgrind(sqlite3 *database, const sj_call_part *part, FILE *output,
                                 sj_error *error)
{
    row_writer writer = {.output = output, .function_id = -1};
    const sj_sql_binds session = SJ_SQL_INTS(part->session_id);
    fputs("# callgrind format\nversion: 1\ncreator: sojourn\ncmd: ", output);
    SJ_TRY(sj_sql_each(database,
                       "SELECT s.command, (SELECT sum(self_ns) FROM function_stats "
                       "WHERE session_id = ?1) FROM sessions AS s WHERE s.session_id = ?1",
                       session, write_session, output, error));
    return sj_sql_each(database, sj_callgrind_sql, session, write_row, &writer, error);
}

const sj_exporter sj_exporter_callgrind = {
    .name = "callgrind",
    .endings = ".callgrind",
    .summary = "self time and callees of each function, for KCachegrind and callgrind_annotate",
    .is_whole = true,
    .write = write_callgrind,
};
