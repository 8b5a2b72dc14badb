/* Design notes
 *
 * Each table is a question to the cluster, whose answer is stored in temp.answer, and a statement
 * that creates rows from it. Two temporary tables convert keys of the cluster to ids of this
 * database: one for functions, one for call paths. A session has its own modules, because the
 * functions of a module are a range of ids, and other sessions may have entered other functions.
 *
 * Answers omit shards that are unreachable. All rows of a session are on one shard, so an answer
 * with rows of the session has all of them. If an answer has none, the session's row in `sessions`
 * shows whether the shard answers. */
#include "collector-server/forward/cluster_copy.h"

#include "collector-server/forward/clickhouse.h"
#include "collector-server/forward/cluster_question.h"
#include "collector-server/store/database.h"
#include "proto/base/progress.h"
#include "proto/callgraph/histogram.h"

#include "schema/queries/forward/copy.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { UUID_DIGITS = 32, TIME_MS = 600000 };

typedef struct copied_table {
    const char *question;  /* %s: the sessions; NULL: the statement uses the previous answer */
    const char *statement; /* ?1: the session_id */
} copied_table;

/* The statements that add sessions without their sums. */
static const copied_table of_labs[] = {
    {sj_lab_sessions_question_sql, sj_add_devices_sql},
    {NULL, sj_create_ids_sql},
    {NULL, sj_add_ids_sql},
    {NULL, sj_add_sessions_sql},
    {NULL, sj_add_processes_sql},
    {NULL, sj_add_programs_sql},
    {NULL, sj_add_program_plans_sql},
    {NULL, sj_add_program_modules_sql},
    {sj_lab_marks_question_sql, sj_add_marks_sql},
};

static const copied_table of_session[] = {
    {sj_functions_question_sql, sj_create_keys_sql},
    {NULL, sj_clear_keys_sql},
    {NULL, sj_add_keys_sql},
    {NULL, sj_add_modules_sql},
    {NULL, sj_add_functions_sql},
    {NULL, sj_add_plans_sql},
    {NULL, sj_add_session_modules_sql},
    {sj_function_stats_question_sql, sj_add_function_stats_sql},
    {NULL, sj_create_unknown_sql},
    {NULL, sj_clear_unknown_sql},
    {NULL, sj_add_unknown_sql},
    {sj_call_edges_question_sql, sj_add_call_edges_sql},
    {sj_call_paths_question_sql, sj_create_nodes_sql},
    {NULL, sj_index_nodes_sql},
    {NULL, sj_clear_nodes_sql},
    {NULL, sj_add_nodes_sql},
    {NULL, sj_add_call_paths_sql},
    {sj_gaps_question_sql, sj_add_gaps_sql},
    {NULL, sj_remove_program_sql},
    {NULL, sj_add_profile_sql},
};

static void from_hex(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count;
    const char *digits = (const char *)sqlite3_value_text(arguments[0]);
    const size_t bytes = digits != NULL ? strlen(digits) / 2 : 0;
    uint8_t *made = sqlite3_malloc64(bytes + 1);
    for (size_t i = 0; made != NULL && i < bytes; i++) {
        const char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        made[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    if (made == NULL) {
        sqlite3_result_error_nomem(context);
    } else {
        sqlite3_result_blob64(context, made, bytes, sqlite3_free);
    }
}

/* Returns a number; the answer contains numbers of 64 bits as text. */
static uint64_t number_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL ? strtoull(text, NULL, 10) : (uint64_t)json_integer_value(value);
}

static sj_status add_bins(const json_t *bins, const json_t *counts, sj_histogram *histogram)
{
    const size_t count = json_array_size(bins);
    if (count != json_array_size(counts)) {
        return SJ_ECORRUPT;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t bin = number_of(json_array_get(bins, i));
        if (bin >= SJ_HISTOGRAM_BINS) {
            return SJ_ECORRUPT;
        }
        SJ_TRY(sj_histogram_add(histogram, sj_histogram_low((uint32_t)bin),
                                number_of(json_array_get(counts, i))));
    }
    return SJ_OK;
}

static void histogram_of(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count;
    sj_histogram histogram = {0};
    json_t *bins = json_loads((const char *)sqlite3_value_text(arguments[0]), 0, NULL);
    json_t *counts = json_loads((const char *)sqlite3_value_text(arguments[1]), 0, NULL);
    sj_status status = add_bins(bins, counts, &histogram);
    const size_t bound = sj_histogram_encoded_bound(&histogram);
    uint8_t *bytes = status == SJ_OK ? sqlite3_malloc64(bound + 1) : NULL;
    if (status == SJ_OK && bytes != NULL) {
        sqlite3_result_blob64(context, bytes, sj_histogram_encode(&histogram, bytes, bound),
                              sqlite3_free);
    } else {
        sqlite3_result_error(context, "a histogram cannot be read", -1);
    }
    json_decref(bins);
    json_decref(counts);
    sj_histogram_deinit(&histogram);
}

static sj_status register_functions(sqlite3 *database, sj_error *error)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    return sqlite3_create_function_v2(database, "from_hex", 1, flags, NULL, from_hex, NULL, NULL,
                                      NULL) == SQLITE_OK &&
                   sqlite3_create_function_v2(database, "histogram_of", 2, flags, NULL,
                                              histogram_of, NULL, NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    const int result = sqlite3_extended_errcode(database);
    const bool contradicts = (result & 0xff) == SQLITE_CONSTRAINT || result == SQLITE_ERROR;
    return sj_fail(error, contradicts ? SJ_ECORRUPT : sj_database_status(result),
                   contradicts ? "the cluster's rows of a session contradict each other: %s"
                               : "cannot write the copy: %s",
                   sqlite3_errmsg(database));
}

static sj_status run_statement(sqlite3 *database, const char *sql, int64_t session_id,
                               sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    if (session_id != 0 && sqlite3_bind_parameter_count(statement) != 0) {
        sqlite3_bind_int64(statement, 1, session_id);
    }
    const int result = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? SJ_OK : fail_sql(database, error);
}

/* Replaces each %s of a question by `sessions`. Release with sqlite3_free. Returns NULL if out of
 * memory. */
static char *fill_in(const char *question, const char *sessions)
{
    sqlite3_str *made = sqlite3_str_new(NULL);
    for (const char *at = question; *at != '\0';) {
        const char *place = strstr(at, "%s");
        const size_t size = place != NULL ? (size_t)(place - at) : strlen(at);
        sqlite3_str_append(made, at, (int)size);
        if (place != NULL) {
            sqlite3_str_appendall(made, sessions);
        }
        at += size + (place != NULL ? 2 : 0);
    }
    return sqlite3_str_finish(made);
}

/* The sessions to copy: `sessions` is inserted in the questions, `session_id` is bound in the
 * statements. */
typedef struct copied_sessions {
    const char *sessions;
    int64_t session_id;
} copied_sessions;

static sj_status ask_table(sj_forward_target *target, sqlite3 *database, const char *asked,
                           const copied_sessions *what, sj_error *error)
{
    const sj_cluster_limits limits = {.rows = INT32_MAX, .time_ms = TIME_MS};
    bool is_cut = false;
    char *question = fill_in(asked, what->sessions);
    if (question == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status =
        sj_cluster_ask_into(target, question, &limits, database, &is_cut, error);
    sqlite3_free(question);
    SJ_TRY(status);
    return is_cut ? sj_fail(error, SJ_ELIMIT, "the cluster has too many rows for one copy") : SJ_OK;
}

static sj_status is_reply_empty(sqlite3 *database, bool *is_empty, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, "SELECT 1 FROM temp.answer LIMIT 1", -1, &row, NULL) !=
        SQLITE_OK) {
        return fail_sql(database, error);
    }
    *is_empty = sqlite3_step(row) == SQLITE_DONE;
    return sqlite3_finalize(row) == SQLITE_OK ? SJ_OK : fail_sql(database, error);
}

/* Fails with SJ_EAGAIN unless the session's shard answers. */
static sj_status find_shard(sj_forward_target *target, const char *session, sj_error *error)
{
    char sql[128];
    char *reply = NULL;
    size_t size = 0;
    snprintf(sql, sizeof(sql), "SELECT count() FROM sessions WHERE session = %s", session);
    SJ_TRY(sj_clickhouse_ask(target, sql, SJ_CLICKHOUSE_PARTIAL, TIME_MS, &reply, &size, error));
    const bool is_there = strtoull(reply, NULL, 10) != 0;
    free(reply);
    return is_there ? SJ_OK
                    : sj_fail(error, SJ_EAGAIN,
                              "the shard that has the session %s does not answer, or the session "
                              "was removed there",
                              session);
}

/* Asks for rows of one session. If there are none but the shard answers, asks again, because the
 * shard may have come back between both questions. */
static sj_status ask_session(sj_forward_target *target, sqlite3 *database, const char *asked,
                             const copied_sessions *what, sj_error *error)
{
    bool is_empty = false;
    SJ_TRY(ask_table(target, database, asked, what, error));
    SJ_TRY(is_reply_empty(database, &is_empty, error));
    if (!is_empty) {
        return SJ_OK;
    }
    SJ_TRY(find_shard(target, what->sessions, error));
    return ask_table(target, database, asked, what, error);
}

static sj_status copy_tables(sj_forward_target *target, sqlite3 *database,
                             const copied_table *tables, size_t count, const copied_sessions *what,
                             sj_error *error)
{
    SJ_TRY(register_functions(database, error));
    SJ_TRY(run_statement(database, "BEGIN IMMEDIATE", 0, error));
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin(count);
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        if (tables[i].question != NULL) {
            status = (what->session_id != 0 ? ask_session : ask_table)(
                target, database, tables[i].question, what, error);
        }
        if (status == SJ_OK) {
            status = run_statement(database, tables[i].statement, what->session_id, error);
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    if (status == SJ_OK) {
        return run_statement(database, "COMMIT", 0, error);
    }
    sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

sj_status sj_cluster_copy_sessions(sj_forward_target *target, sqlite3 *database,
                                   const char *sessions, sj_error *error)
{
    const bool is_question = sessions != NULL && strncmp(sessions, "SELECT", 6) == 0;
    char *filter = sessions != NULL ? sqlite3_mprintf(" WHERE session %s (%s)",
                                                      is_question ? "GLOBAL IN" : "IN", sessions)
                                    : sqlite3_mprintf("%s", "");
    if (filter == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const copied_sessions what = {.sessions = filter};
    const sj_status status =
        copy_tables(target, database, of_labs, sizeof(of_labs) / sizeof(of_labs[0]), &what, error);
    sqlite3_free(filter);
    return status;
}

static sj_status find_uuid(sqlite3 *database, int64_t session_id, char *uuid, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    sj_status status = SJ_ENOTFOUND;
    if (sqlite3_prepare_v2(database, "SELECT lower(hex(uuid)) FROM sessions WHERE session_id = ?1",
                           -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        if (sqlite3_step(row) == SQLITE_ROW) {
            snprintf(uuid, UUID_DIGITS + 1, "%s", (const char *)sqlite3_column_text(row, 0));
            status = SJ_OK;
        }
    }
    sqlite3_finalize(row);
    return status == SJ_OK ? SJ_OK : sj_fail(error, status, "there is no such session in the copy");
}

sj_status sj_cluster_copy_sums(sj_forward_target *target, sqlite3 *database, int64_t session_id,
                               sj_error *error)
{
    char uuid[UUID_DIGITS + 1];
    char quoted[UUID_DIGITS + 3];
    SJ_TRY(find_uuid(database, session_id, uuid, error));
    snprintf(quoted, sizeof(quoted), "'%s'", uuid);
    const copied_sessions what = {.sessions = quoted, .session_id = session_id};
    return copy_tables(target, database, of_session, sizeof(of_session) / sizeof(of_session[0]),
                       &what, error);
}

sj_status sj_cluster_copy_unknown(sqlite3 *database, int64_t *sessions, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    *sessions = 0;
    SJ_TRY(run_statement(database, sj_create_unknown_sql, 0, error));
    if (sqlite3_prepare_v2(database,
                           "SELECT count(*) FROM temp.unknown JOIN profiles USING (session_id)", -1,
                           &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW) {
        *sessions = sqlite3_column_int64(row, 0);
    }
    return sqlite3_finalize(row) == SQLITE_OK ? SJ_OK : fail_sql(database, error);
}

sj_status sj_cluster_copy_keep(sqlite3 *database, const int64_t *session_ids, size_t count,
                               sj_error *error)
{
    static const char *const removals[] = {
        "DELETE FROM sessions WHERE session_id NOT IN (SELECT session_id FROM temp.kept)",
        "DELETE FROM devices WHERE device_id NOT IN (SELECT device_id FROM sessions)",
        "DELETE FROM session_modules WHERE number = 0",
        ("DELETE FROM hook_plans WHERE module_id IN (SELECT module_id FROM modules WHERE"
         " first_function_id = 0)"),
        "DELETE FROM modules WHERE first_function_id = 0"};
    SJ_TRY(run_statement(database,
                         "CREATE TEMP TABLE IF NOT EXISTS kept(session_id INTEGER PRIMARY KEY)", 0,
                         error));
    for (size_t i = 0; i < count; i++) {
        SJ_TRY(run_statement(database, "INSERT OR IGNORE INTO temp.kept VALUES (?1)",
                             session_ids[i], error));
    }
    for (size_t i = 0; i < sizeof(removals) / sizeof(removals[0]); i++) {
        SJ_TRY(run_statement(database, removals[i], 0, error));
    }
    return SJ_OK;
}
