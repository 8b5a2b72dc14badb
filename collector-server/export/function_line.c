#include "collector-server/export/function_line.h"

#include "collector-server/store/sql.h"

#include <stdio.h>
#include <string.h>

sj_status sj_function_values_open(sqlite3 *database, int64_t session_id, sj_function_values *values,
                                  sj_error *error)
{
    static const char any_sql[] = "SELECT 1 FROM arguments WHERE session_id = ?1 LIMIT 1";
    static const char of_call_sql[] =
        "SELECT position, value, note, kind FROM arguments WHERE session_id = ?1 AND call_id = ?2 "
        "ORDER BY position, rule";
    int64_t one;
    *values = (sj_function_values){.session_id = session_id};
    const sj_status status = sj_sql_number(database, any_sql, SJ_SQL_INTS(session_id), &one, error);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    if (sqlite3_prepare_v2(database, of_call_sql, -1, &values->select, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the values: %s", sqlite3_errmsg(database));
    }
    return SJ_OK;
}

void sj_function_values_close(sj_function_values *values)
{
    sqlite3_finalize(values->select);
    values->select = NULL;
}

/* Writes the value of a row to `text`. Puts strings in quotes. */
static void write_value(sqlite3_stmt *row, char text[SJ_CALL_TEXT_VALUE])
{
    sj_cut_text to = sj_cut_text_init(text, SJ_CALL_TEXT_VALUE);
    const char *value = (const char *)sqlite3_column_text(row, 1);
    const size_t bytes = (size_t)sqlite3_column_bytes(row, 1);
    const char *note = (const char *)sqlite3_column_text(row, 2);
    const char *kind = (const char *)sqlite3_column_text(row, 3);
    if (value == NULL) {
        sj_cut_text_add(&to, note != NULL ? note : "null");
    } else if (kind != NULL && strcmp(kind, "string") == 0) {
        sj_cut_text_quote(&to, value, bytes, note != NULL);
    } else {
        sj_cut_text_add(&to, value);
        sj_cut_text_add(&to, note != NULL ? "..." : "");
    }
}

/* The recorded values of a call. */
typedef struct recorded_call {
    sj_call_arguments arguments;
    bool has_result, has_errno;
    char result[SJ_CALL_TEXT_VALUE];
    int64_t errno_number;
} recorded_call;

/* Reads a value of a call. Several rules may have stored the same value. Their rows are equal, so
 * the last row counts. */
static sj_status read_value(void *context, sqlite3_stmt *row)
{
    recorded_call *call = context;
    sj_call_arguments *arguments = &call->arguments;
    const int position = sqlite3_column_int(row, 0);
    const char *kind = (const char *)sqlite3_column_text(row, 3);
    if (kind != NULL && strcmp(kind, "errno") == 0) {
        call->errno_number = sqlite3_column_int64(row, 1);
        call->has_errno = true;
    } else if (position == 0) {
        write_value(row, call->result);
        call->has_result = true;
    } else if (position > 0 && position < SJ_CALL_TEXT_ARGUMENTS) {
        write_value(row, arguments->values[position]);
        arguments->is_known[position] = true;
        arguments->last = position > arguments->last ? position : arguments->last;
    }
    return SJ_OK;
}

sj_status sj_function_line_make(const sj_function_values *values, int64_t call_id, const char *name,
                                const char *ending, sj_function_line *line, sj_error *error)
{
    recorded_call call = {.has_result = false};
    sj_cut_text to = sj_cut_text_init(line->name, sizeof(line->name));
    sj_cut_text result = sj_cut_text_init(line->result, sizeof(line->result));
    name = name != NULL ? name : "(unknown function)";
    sj_call_arguments_clear(&call.arguments);
    if (values->select != NULL) {
        sqlite3_bind_int64(values->select, 1, values->session_id);
        sqlite3_bind_int64(values->select, 2, call_id);
        SJ_TRY(sj_sql_each_row(values->select, read_value, &call, error));
    }
    if (call.arguments.last != 0) {
        sj_call_text_name(name, &call.arguments, &to);
    } else {
        sj_cut_text_add(&to, name);
    }
    const sj_ending how = strcmp(ending, "unwound") == 0     ? SJ_ENDING_UNWOUND
                          : strcmp(ending, "truncated") == 0 ? SJ_ENDING_TRUNCATED
                                                             : SJ_ENDING_RETURNED;
    sj_call_text_result(how, call.has_result ? call.result : NULL, &result);
    if (call.has_errno) {
        sj_call_text_errno(call.errno_number, &result);
    }
    return SJ_OK;
}
