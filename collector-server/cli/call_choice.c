#include "collector-server/cli/call_choice.h"
#include "schema/queries/cli/call_choice.h"

#include <stdlib.h>
#include <string.h>

static sj_status parse_time(const sj_option *option, const char *text, int64_t *ns, sj_error *error)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    char *end = NULL;
    const double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0 && number >= 0 && number * units[i].ns < 9e18) {
            *ns = (int64_t)(number * units[i].ns + 0.5);
            return SJ_OK;
        }
    }
    return sj_fail(error, SJ_EINVAL, "--%s needs a time since the session's start, as 1.5s or 20ms",
                   option->name);
}

sj_status sj_moment_parse(const sj_option *option, void *values, const char *text, sj_error *error)
{
    return parse_time(option, text, (int64_t *)(void *)((char *)values + option->offset), error);
}

sj_status sj_call_choice_from(const sj_option *option, void *values, const char *text,
                              sj_error *error)
{
    sj_call_choice *choice = (sj_call_choice *)(void *)((char *)values + option->offset);
    SJ_TRY(parse_time(option, text, &choice->from_ns, error));
    choice->has_from = true;
    return SJ_OK;
}

sj_status sj_call_choice_to(const sj_option *option, void *values, const char *text,
                            sj_error *error)
{
    sj_call_choice *choice = (sj_call_choice *)(void *)((char *)values + option->offset);
    SJ_TRY(parse_time(option, text, &choice->to_ns, error));
    choice->has_to = true;
    return SJ_OK;
}

int sj_call_choice_check(const sj_command *command, const sj_call_choice *choice)
{
    return choice->has_from && choice->has_to && choice->to_ns < choice->from_ns
               ? sj_command_usage_error(command, "--to is a moment before --from")
               : -1;
}

static sj_status fail_and_finalize(sqlite3 *database, sqlite3_stmt *row, sj_error *error)
{
    sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
    sqlite3_finalize(row);
    return SJ_EIO;
}

static sj_status find_selection(sqlite3 *database, int64_t session_id, sj_call_choice *choice,
                                sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sj_call_choice_selection_sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_and_finalize(database, row, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    sqlite3_bind_text(row, 2, choice->thread, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, choice->process, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 4, choice->mark, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 5, choice->has_from ? choice->from_ns : -INT64_MAX);
    sqlite3_bind_int64(row, 6, choice->has_to ? choice->to_ns + 1 : INT64_MAX);
    if (sqlite3_step(row) != SQLITE_ROW) {
        return fail_and_finalize(database, row, error);
    }
    const int64_t chosen_streams = sqlite3_column_int64(row, 1);
    const int64_t phases = sqlite3_column_int64(row, 2);
    const int64_t all_streams = sqlite3_column_int64(row, 3);
    const bool is_everything = choice->mark == NULL && !choice->has_from && !choice->has_to &&
                               chosen_streams == all_streams;
    choice->selection = is_everything ? NULL : sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    if (phases == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "the session has no mark '%s'; `sojourn sql \"SELECT DISTINCT name FROM "
                       "marks\"` lists them",
                       choice->mark);
    }
    if (all_streams == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "the session has no single calls: it recorded none, or they stayed in their "
                       "lab (`sojourn forward calls` sends them to the cluster)");
    }
    if (chosen_streams == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "no such thread or process, or no time, is left; `sojourn sql \"SELECT "
                       "t.number, t.tid, t.name, p.pid FROM threads t JOIN processes p ON p.number "
                       "= t.process_number\"` lists them");
    }
    return is_everything || choice->selection != NULL ? SJ_OK
                                                      : sj_fail(error, SJ_ENOMEM, "out of memory");
}

/* Writes the ids of the matching functions to `list`, as a JSON array. Skips functions that the
 * session never called, because they have no call paths. */
static sj_status find_functions(sqlite3 *database, int64_t session_id, const char *function,
                                const char *module, char **list, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sj_call_choice_functions_sql, -1, &row, NULL) != SQLITE_OK) {
        return fail_and_finalize(database, row, error);
    }
    sqlite3_bind_int64(row, 1, session_id);
    sqlite3_bind_text(row, 2, function, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, module, -1, SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_ROW) {
        return fail_and_finalize(database, row, error);
    }
    const int64_t count = sqlite3_column_int64(row, 1);
    *list = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    if (count == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "no function %s%s%s%s was called in the session",
                       function != NULL ? function : "",
                       function != NULL && module != NULL ? " " : "",
                       module != NULL ? "of module " : "", module != NULL ? module : "");
    }
    return *list != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

sj_status sj_call_choice_find(sqlite3 *database, int64_t session_id, sj_call_choice *choice,
                              sj_error *error)
{
    sj_status status = SJ_OK;
    if (choice->thread != NULL || choice->process != NULL || choice->mark != NULL ||
        choice->has_from || choice->has_to) {
        status = find_selection(database, session_id, choice, error);
    }
    if (status == SJ_OK && (choice->function != NULL || choice->module != NULL)) {
        status = find_functions(database, session_id, choice->function, choice->module,
                                &choice->functions, error);
    }
    if (status == SJ_OK && choice->callers != NULL) {
        status =
            find_functions(database, session_id, choice->callers, NULL, &choice->callees, error);
    }
    if (status != SJ_OK) {
        sj_call_choice_deinit(choice);
    }
    return status;
}

void sj_call_choice_deinit(sj_call_choice *choice)
{
    sqlite3_free(choice->selection);
    sqlite3_free(choice->functions);
    sqlite3_free(choice->callees);
    choice->selection = choice->functions = choice->callees = NULL;
}

void sj_call_choice_bind(const sj_call_choice *choice, sqlite3_stmt *statement)
{
    const char *const texts[] = {choice->selection, choice->functions, choice->callees};
    for (int i = 0; i < 3; i++) {
        (void)sqlite3_bind_text(statement, 11 + i, texts[i], -1, SQLITE_STATIC);
    }
}
