#include "collector-server/cli/zombie_check.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/zombie_coverage.h"
#include "collector-server/store/sql.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <unistd.h>

static int fail(const sj_command *command, sqlite3 *database)
{
    return sj_command_error(command, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
}

static bool was_watched(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    bool watched = false;
    if (sqlite3_prepare_v2(database, "SELECT 1 FROM zombie_accounts WHERE not_watched = '' LIMIT 1",
                           -1, &statement, NULL) == SQLITE_OK) {
        watched = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return watched;
}

/* Attaches the database of the baseline to the other one. */
static bool attach_baseline(sqlite3 *database, const char *baseline)
{
    char *attach = baseline != NULL ? sqlite3_mprintf("ATTACH %Q AS baseline", baseline) : NULL;
    const bool is_fine =
        baseline == NULL ||
        (attach != NULL && sqlite3_exec(database, attach, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_free(attach);
    return is_fine;
}

static void print_text(const json_t *findings, const sj_zombie_coverage *coverage)
{
    char text[SJ_ZOMBIE_COVERAGE_BYTES];
    size_t index;
    json_t *finding;
    json_array_foreach(findings, index, finding)
    {
        char kind[SJ_FUNCTION_NAME_BYTES];
        char used_in[SJ_FUNCTION_NAME_BYTES];
        printf("finding %lld  %s  %s\n", json_integer_value(json_object_get(finding, "id")),
               sj_function_name_fit(json_string_value(json_object_get(finding, "kind")), 0, kind),
               sj_function_name_fit(json_string_value(json_object_get(finding, "used_in")), 0,
                                    used_in));
    }
    printf("%s of freed memory; %s\n", SJ_COUNTED(json_array_size(findings), "new finding"),
           sj_zombie_coverage_text(coverage, text));
}

static json_t *coverage_json(const sj_zombie_coverage *coverage)
{
    return json_pack("{sI sI sf}", "allocations", (json_int_t)coverage->allocations, "guarded",
                     (json_int_t)coverage->guarded, "guarded_percent",
                     sj_zombie_coverage_percent(coverage));
}

static sj_status read_finding(void *findings, sqlite3_stmt *row)
{
    const char *kind = (const char *)sqlite3_column_text(row, 1);
    const char *used_in = (const char *)sqlite3_column_text(row, 2);
    return json_array_append_new(findings, json_pack("{sI so so}", "id",
                                                     (json_int_t)sqlite3_column_int64(row, 0),
                                                     "kind", sj_json_clean_string(kind), "used_in",
                                                     sj_json_clean_string(used_in))) == 0
               ? SJ_OK
               : SJ_ENOMEM;
}

int sj_zombie_check(const sj_command *command, sqlite3 *database, const char *baseline,
                    bool as_json)
{
    sj_error error = {0};
    sj_zombie_coverage coverage;
    if (!was_watched(database)) {
        return sj_command_error(command, SJ_EXIT_FAILED,
                                "no process was watched: record with --zombies");
    }
    if (baseline != NULL && access(baseline, R_OK) != 0) {
        return sj_command_error(command, SJ_EXIT_NOT_FOUND, "there is no %s", baseline);
    }
    const char *sql =
        baseline != NULL ? "SELECT zombie_id, kind, used_in FROM zombies WHERE state <> 'resolved'"
                           " AND fingerprint NOT IN (SELECT fingerprint FROM baseline.zombies)"
                         : "SELECT zombie_id, kind, used_in FROM zombies WHERE state <> 'resolved'";
    if (!attach_baseline(database, baseline)) {
        return fail(command, database);
    }
    json_t *findings = json_array();
    if (sj_sql_each(database, sql, (sj_sql_binds){0}, read_finding, findings, &error) != SJ_OK) {
        json_decref(findings);
        return sj_command_failed(command, &error);
    }
    (void)sj_zombie_coverage_read(database, 0, &coverage);
    const int code = json_array_size(findings) != 0 ? SJ_EXIT_DIFFERS : SJ_EXIT_OK;
    if (!as_json) {
        print_text(findings, &coverage);
        json_decref(findings);
        return code;
    }
    const int written = sj_json_output(
        command,
        json_pack("{ss so so}", "verdict", code == SJ_EXIT_OK ? "no_new_findings" : "new_findings",
                  "findings", findings, "coverage", coverage_json(&coverage)));
    return written != SJ_EXIT_OK ? written : code;
}
