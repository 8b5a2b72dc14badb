/* function.txt: one line for each entry and exit, in the order in which they happened on a stream:
 *
 *   TID[ENTER,DURATION]enter:NAME         TID: kernel thread id
 *   TID[LEAVE,DURATION]leave:NAME ret:0   ENTER, LEAVE: ns since the session's start
 *
 * DURATION is the call's, in ns; 0 in lines of calls that are still open. Return values are not
 * recorded yet, so that `ret` is always 0. Line ends in names become spaces.
 *
 * Design notes. Calls come by call id, which is the order of entry; exits are written when a call
 * comes that is not deeper. Only the open calls are held. */
#include "collector-server/export/exporter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct open_line {
    char *name;
    int64_t tid, depth, end_ns, duration_ns;
    bool ended;
} open_line;

typedef struct line_stack {
    open_line *lines;
    size_t count, capacity;
} line_stack;

static void close_calls(line_stack *stack, int64_t depth, FILE *output)
{
    while (stack->count != 0 && stack->lines[stack->count - 1].depth >= depth) {
        open_line *line = &stack->lines[--stack->count];
        if (line->ended) {
            fprintf(output, "%lld[%lld,%lld]leave:%sret:0\n", (long long)line->tid,
                    (long long)line->end_ns, (long long)line->duration_ns, line->name);
        }
        free(line->name);
    }
}

static sj_status open_call(line_stack *stack, sqlite3_stmt *row, FILE *output)
{
    if (stack->count == stack->capacity) {
        const size_t capacity = stack->capacity * 2 + 64;
        open_line *lines = realloc(stack->lines, capacity * sizeof(*lines));
        if (lines == NULL) {
            return SJ_ENOMEM;
        }
        stack->lines = lines;
        stack->capacity = capacity;
    }
    const char *name = (const char *)sqlite3_column_text(row, 0);
    open_line line = {.name = strdup(name != NULL ? name : "(unknown function)"),
                      .tid = sqlite3_column_int64(row, 4),
                      .depth = sqlite3_column_int64(row, 5),
                      .end_ns = sqlite3_column_int64(row, 2),
                      .duration_ns = sqlite3_column_int64(row, 3),
                      .ended = sqlite3_column_type(row, 2) != SQLITE_NULL};
    if (line.name == NULL) {
        return SJ_ENOMEM;
    }
    for (char *at = line.name; *at != '\0'; ++at) {
        *at = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    fprintf(output, "%lld[%lld,%lld]enter:%s\n", (long long)line.tid,
            (long long)sqlite3_column_int64(row, 1), (long long)line.duration_ns, line.name);
    stack->lines[stack->count++] = line;
    return SJ_OK;
}

static sj_status write_function_txt(sqlite3 *database, int64_t session_id, FILE *output,
                                    sj_error *error)
{
    static const char sql[] =
        "SELECT f.name, c.start_ns, c.end_ns, c.duration_ns, "
        "coalesce(nullif(t.tid, 0), c.stream_id), c.depth, c.stream_id FROM calls AS c "
        "LEFT JOIN functions AS f ON f.function_id = c.function_id "
        "LEFT JOIN threads AS t ON t.thread_id = c.thread_id "
        "WHERE c.session_id = ?1 ORDER BY c.call_id";
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    line_stack stack = {0};
    sj_status status = SJ_OK;
    int64_t stream_id = 0;
    int result = SQLITE_DONE;
    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        const bool same = sqlite3_column_int64(row, 6) == stream_id;
        close_calls(&stack, same ? sqlite3_column_int64(row, 5) : 0, output);
        stream_id = sqlite3_column_int64(row, 6);
        status = open_call(&stack, row, output);
    }
    close_calls(&stack, 0, output);
    free(stack.lines);
    if (status != SJ_OK) {
        (void)sj_fail(error, status, "no memory for the open calls");
    } else if (result != SQLITE_DONE) {
        status = sj_fail(error, SJ_EIO, "cannot read the calls: %s", sqlite3_errmsg(database));
    }
    sqlite3_finalize(row);
    return status;
}

const sj_exporter sj_exporter_function_txt = {
    .name = "function.txt",
    .summary = "one line for each entry and exit: TID[TIME,DURATION]leave:NAMEret:0",
    .write = write_function_txt,
};
