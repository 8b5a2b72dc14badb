#include "collector-server/fleet/record_jobs.h"

#include "collector-server/fleet/fleet_internal.h"
#include "schema/queries/fleet/record_jobs.h"

#include <stdlib.h>
#include <string.h>

/* Reads a command's state and its result. A result that is not JSON becomes {"text": result}. */
static sj_status read_row(sj_fleet *fleet, int64_t command_id, char state[16], json_t **result,
                          sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, "SELECT state, result FROM commands WHERE command_id = ?1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, command_id);
    sj_status status = SJ_OK;
    if (sqlite3_step(statement) != SQLITE_ROW) {
        status = sj_fail(error, SJ_EIO, "its command %lld cannot be read", (long long)command_id);
    } else {
        const char *text = (const char *)sqlite3_column_text(statement, 1);
        snprintf(state, 16, "%s", (const char *)sqlite3_column_text(statement, 0));
        *result = text != NULL ? json_loads(text, 0, NULL) : NULL;
        if (*result == NULL) {
            *result = json_object();
            json_object_set_new(*result, "text", json_string(text != NULL ? text : ""));
        }
        status = *result != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sqlite3_finalize(statement);
    return status;
}

static sj_status write_progress(sj_fleet *fleet, int64_t command_id, const json_t *progress,
                                sj_error *error)
{
    sqlite3_stmt *statement;
    char *text = json_dumps(progress, JSON_COMPACT);
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_status status = sj_fleet_prepare(
        fleet, "UPDATE commands SET result = ?2 WHERE command_id = ?1 AND state = 'preparing'",
        &statement, error);
    if (status == SJ_OK) {
        sqlite3_bind_int64(statement, 1, command_id);
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_TRANSIENT);
        status = sj_fleet_finish_statement(fleet, statement, error);
    }
    free(text);
    return status;
}

void sj_record_job_reach(json_t *progress, const char *state)
{
    json_t *at = json_object_get(progress, "at");
    if (at == NULL) {
        at = json_object();
        json_object_set_new(progress, "at", at);
    }
    json_object_set_new(progress, "state", json_string(state));
    json_object_set_new(at, state, json_integer(sj_fleet_now_ns()));
}

/* Returns the arguments of a step. "prepare" gets those of the program. "launch" gets all except
 * those for the collector, and "prepared". */
static json_t *arguments_of_step(const sj_fleet_command *command, const char *kind)
{
    static const char *const of_collector[] = {"to", "format"};
    static const char *const of_program[] = {"app", "command", "directory", "environment",
                                             "prepare"};
    json_t *all = json_loads(command->arguments, 0, NULL);
    if (strcmp(kind, "launch") == 0) {
        for (size_t i = 0; i < sizeof(of_collector) / sizeof(of_collector[0]); i++) {
            json_object_del(all, of_collector[i]);
        }
        json_object_set_new(all, "prepared", json_true());
        return all;
    }
    json_t *some = json_object();
    for (size_t i = 0; i < sizeof(of_program) / sizeof(of_program[0]); i++) {
        json_object_set(some, of_program[i], json_object_get(all, of_program[i]));
    }
    json_decref(all);
    return some;
}

/* Gives the device one step, and stores its command id in `progress`. */
static sj_status give_step(sj_fleet *fleet, const sj_fleet_command *command, const char *kind,
                           json_t *progress, sj_error *error)
{
    int64_t step = 0;
    json_t *arguments = arguments_of_step(command, kind);
    char *text = json_dumps(arguments, JSON_COMPACT);
    const sj_fleet_new_command new_command = {.device_id = command->device_id,
                                              .kind = kind,
                                              .arguments = text != NULL ? text : "",
                                              .requested_by = "collector",
                                              .timeout_ms = command->timeout_ms};
    sj_status status =
        text != NULL ? sj_fleet_begin(fleet, error) : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status == SJ_OK) {
        status = sj_fleet_command_add(fleet, &new_command, &step, error);
        if (status == SJ_OK) {
            json_object_set_new(progress, kind, json_integer((json_int_t)step));
            status = write_progress(fleet, command->command_id, progress, error);
        }
        status = sj_fleet_end(fleet, status, error);
    }
    free(text);
    json_decref(arguments);
    return status;
}

/* Reads the result of a step. Returns SJ_EAGAIN while it runs, and SJ_EINVAL if it has failed. */
static sj_status read_step(sj_fleet *fleet, const json_t *progress, const char *kind,
                           json_t **result, sj_error *error)
{
    char state[16];
    const int64_t step = json_integer_value(json_object_get(progress, kind));
    SJ_TRY(read_row(fleet, step, state, result, error));
    if (strcmp(state, "done") == 0) {
        return SJ_OK;
    }
    if (strcmp(state, "queued") == 0 || strcmp(state, "sent") == 0) {
        return SJ_EAGAIN;
    }
    const char *text = json_string_value(json_object_get(*result, "text"));
    return sj_fail(error, SJ_EINVAL, "%s: %s", kind, text != NULL ? text : state);
}

/* Gives the device the step "launch" once its step "prepare" is done. Returns SJ_EAGAIN unless a
 * step has failed. */
static sj_status after_preparation(sj_fleet *fleet, const sj_fleet_command *command,
                                   json_t *progress, sj_error *error)
{
    json_t *result = NULL;
    sj_status status = read_step(fleet, progress, "prepare", &result, error);
    if (status == SJ_OK) {
        json_object_set(progress, "runtime", json_object_get(result, "runtime"));
        json_object_set(progress, "needs", json_object_get(result, "needs"));
        sj_record_job_reach(progress, "prepared");
        status = give_step(fleet, command, "launch", progress, error);
    }
    json_decref(result);
    return status == SJ_OK ? SJ_EAGAIN : status;
}

/* Stores the session's UUID once the step "launch" is done. Returns SJ_EAGAIN unless the step
 * has failed. */
static sj_status after_launch(sj_fleet *fleet, const sj_fleet_command *command, json_t *progress,
                              sj_error *error)
{
    json_t *result = NULL;
    sj_status status = read_step(fleet, progress, "launch", &result, error);
    if (status == SJ_OK) {
        json_object_set(progress, "session", json_object_get(result, "session"));
        sj_record_job_reach(progress, "started");
        status = write_progress(fleet, command->command_id, progress, error);
    }
    json_decref(result);
    return status == SJ_OK ? SJ_EAGAIN : status;
}

/* Checks the session. Its state becomes "recording" once a block of it is stored or it has
 * ended. Returns SJ_OK once it has ended. */
static sj_status after_start(sj_fleet *fleet, const sj_fleet_command *command, json_t *progress,
                             sj_error *error)
{
    sqlite3_stmt *statement;
    bool records = false;
    bool has_ended = false;
    SJ_TRY(sj_fleet_prepare(fleet, sj_record_jobs_session_sql, &statement, error));
    sj_fleet_bind_text(statement, 1, json_string_value(json_object_get(progress, "session")));
    if (sqlite3_step(statement) == SQLITE_ROW) {
        records = sqlite3_column_int(statement, 0) != 0;
        has_ended = sqlite3_column_int(statement, 1) != 0;
    }
    sqlite3_finalize(statement);
    const bool is_new = json_object_get(json_object_get(progress, "at"), "recording") == NULL;
    if (is_new && (records || has_ended)) {
        sj_record_job_reach(progress, "recording");
        SJ_TRY(write_progress(fleet, command->command_id, progress, error));
    }
    return has_ended ? SJ_OK : SJ_EAGAIN;
}

static sj_status step(sj_fleet *fleet, const sj_fleet_command *command, json_t *progress,
                      sj_error *error)
{
    if (json_object_get(progress, "prepare") == NULL) {
        json_object_clear(progress);
        sj_record_job_reach(progress, "preparing");
        SJ_TRY(give_step(fleet, command, "prepare", progress, error));
        return SJ_EAGAIN;
    }
    if (json_object_get(progress, "launch") == NULL) {
        return after_preparation(fleet, command, progress, error);
    }
    return json_object_get(progress, "session") == NULL
               ? after_launch(fleet, command, progress, error)
               : after_start(fleet, command, progress, error);
}

sj_status sj_record_job_step(sj_fleet *fleet, const sj_fleet_command *command, json_t **progress,
                             sj_error *error)
{
    char state[16];
    json_t *known = NULL;
    SJ_TRY(read_row(fleet, command->command_id, state, &known, error));
    const sj_status status = step(fleet, command, known, error);
    if (status == SJ_OK) {
        *progress = known;
    } else {
        json_decref(known);
    }
    return status;
}
