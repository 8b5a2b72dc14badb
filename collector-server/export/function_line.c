#include "collector-server/export/function_line.h"

#include <stdio.h>
#include <string.h>

sj_status sj_function_values_open(sqlite3 *database, int64_t session_id, sj_function_values *values,
                                  sj_error *error)
{
    static const char any_sql[] = "SELECT 1 FROM arguments WHERE session_id = ?1 LIMIT 1";
    static const char of_call_sql[] =
        "SELECT position, value, note, kind FROM arguments WHERE session_id = ?1 AND call_id = ?2 "
        "ORDER BY position, rule";
    sqlite3_stmt *row = NULL;
    *values = (sj_function_values){.session_id = session_id};
    if (sqlite3_prepare_v2(database, any_sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the values: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    const bool has_values = sqlite3_step(row) == SQLITE_ROW;
    sqlite3_finalize(row);
    if (has_values &&
        sqlite3_prepare_v2(database, of_call_sql, -1, &values->select, NULL) != SQLITE_OK) {
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

/* The recorded result and errno of a call. */
typedef struct recorded_end {
    bool has_result, has_errno;
    char result[SJ_CALL_TEXT_VALUE];
    int64_t errno_number;
} recorded_end;

/* Reads the values of a call. Several rules may have stored the same value. Their rows are equal,
 * so the last row counts. */
static void read_values(const sj_function_values *values, int64_t call_id,
                        sj_call_arguments *arguments, recorded_end *end)
{
    sqlite3_bind_int64(values->select, 1, values->session_id);
    sqlite3_bind_int64(values->select, 2, call_id);
    while (sqlite3_step(values->select) == SQLITE_ROW) {
        const int position = sqlite3_column_int(values->select, 0);
        const char *kind = (const char *)sqlite3_column_text(values->select, 3);
        if (kind != NULL && strcmp(kind, "errno") == 0) {
            end->errno_number = sqlite3_column_int64(values->select, 1);
            end->has_errno = true;
        } else if (position == 0) {
            write_value(values->select, end->result);
            end->has_result = true;
        } else if (position > 0 && position < SJ_CALL_TEXT_ARGUMENTS) {
            write_value(values->select, arguments->values[position]);
            arguments->is_known[position] = true;
            arguments->last = position > arguments->last ? position : arguments->last;
        }
    }
    sqlite3_reset(values->select);
}

void sj_function_line_make(const sj_function_values *values, int64_t call_id, const char *name,
                           const char *ending, sj_function_line *line)
{
    sj_call_arguments arguments;
    recorded_end end = {0};
    sj_cut_text to = sj_cut_text_init(line->name, sizeof(line->name));
    sj_cut_text result = sj_cut_text_init(line->result, sizeof(line->result));
    name = name != NULL ? name : "(unknown function)";
    sj_call_arguments_clear(&arguments);
    if (values->select != NULL) {
        read_values(values, call_id, &arguments, &end);
    }
    if (arguments.last != 0) {
        sj_call_text_name(name, &arguments, &to);
    } else {
        sj_cut_text_add(&to, name);
    }
    const sj_ending how = strcmp(ending, "unwound") == 0     ? SJ_ENDING_UNWOUND
                          : strcmp(ending, "truncated") == 0 ? SJ_ENDING_TRUNCATED
                                                             : SJ_ENDING_RETURNED;
    sj_call_text_result(how, end.has_result ? end.result : NULL, &result);
    if (end.has_errno) {
        sj_call_text_errno(end.errno_number, &result);
    }
}
