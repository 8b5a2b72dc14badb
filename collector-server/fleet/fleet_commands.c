#include "collector-server/fleet/fleet_commands.h"

#include "collector-server/fleet/fleet_internal.h"
#include "schema/queries/fleet/fleet_commands.h"

#include <stdio.h>
#include <string.h>

sj_status sj_fleet_command_add(sj_fleet *fleet, const sj_fleet_new_command *new_command,
                               int64_t *command_id, sj_error *error)
{
    sqlite3_stmt *statement;
    if (strlen(new_command->kind) >= SJ_FLEET_KIND_BYTES ||
        strlen(new_command->arguments) >= SJ_FLEET_ARGUMENTS_BYTES) {
        return sj_fail(error, SJ_ELIMIT, "the command has more than %d bytes of arguments",
                       (int)SJ_FLEET_ARGUMENTS_BYTES);
    }
    SJ_TRY(sj_fleet_prepare(
        fleet,
        "INSERT INTO commands (device_id, kind, arguments, requested_by, timeout_ms,"
        " created_realtime_ns, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " RETURNING command_id",
        &statement, error));
    sqlite3_bind_int64(statement, 1, new_command->device_id);
    sqlite3_bind_text(statement, 2, new_command->kind, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 3, new_command->arguments, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 4, new_command->requested_by, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 5, new_command->timeout_ms);
    sqlite3_bind_int64(statement, 6, sj_fleet_now_ns());
    sj_fleet_bind_text(statement, 7, new_command->is_for_collector ? "preparing" : "queued");
    return sj_fleet_read_number(fleet, statement, command_id, error);
}

sj_status sj_fleet_note_poll(sj_fleet *fleet, int64_t device_id, const sj_fleet_poll *poll,
                             sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_poll_note_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
    sqlite3_bind_text(statement, 3, poll->status, -1, SQLITE_TRANSIENT);
    SJ_TRY(sj_fleet_finish_statement(fleet, statement, error));
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_commands_restarted_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, (int64_t)(poll->last_command & INT64_MAX));
    sqlite3_bind_int64(statement, 3, sj_fleet_now_ns());
    sqlite3_bind_int64(statement, 4, poll->instance);
    sqlite3_bind_int(statement, 5, poll->is_restart);
    return sj_fleet_finish_statement(fleet, statement, error);
}

/* Reads the command that a statement returns, and finalises the statement. Returns SJ_ENOTFOUND if
 * there is no row. */
static sj_status read_command(sj_fleet *fleet, sqlite3_stmt *statement, sj_fleet_command *command,
                              sj_error *error)
{
    const int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        command->command_id = sqlite3_column_int64(statement, 0);
        command->device_id = sqlite3_column_int64(statement, 1);
        command->timeout_ms = (uint32_t)sqlite3_column_int64(statement, 2);
        snprintf(command->kind, sizeof(command->kind), "%s",
                 (const char *)sqlite3_column_text(statement, 3));
        snprintf(command->arguments, sizeof(command->arguments), "%s",
                 (const char *)sqlite3_column_text(statement, 4));
        return sj_fleet_finish_statement(fleet, statement, error);
    }
    const sj_status status = result == SQLITE_DONE ? SJ_ENOTFOUND : sj_fleet_failed(fleet, error);
    sqlite3_finalize(statement);
    return status;
}

sj_status sj_fleet_next(sj_fleet *fleet, int64_t device_id, int64_t instance, uint64_t last_command,
                        sj_fleet_command *command, sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_commands_next_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, (int64_t)(last_command & INT64_MAX));
    sqlite3_bind_int64(statement, 3, sj_fleet_now_ns());
    sqlite3_bind_int64(statement, 4, instance);
    return read_command(fleet, statement, command, error);
}

sj_status sj_fleet_claim(sj_fleet *fleet, int64_t device_id, int64_t instance, uint64_t command_id,
                         sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t claimed_by = 0;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "UPDATE commands SET claimed_by = coalesce(claimed_by, ?3)"
                            " WHERE command_id = ?2 AND device_id = ?1 AND state = 'sent'"
                            " RETURNING claimed_by",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, (int64_t)(command_id & INT64_MAX));
    sqlite3_bind_int64(statement, 3, instance);
    const sj_status status = sj_fleet_read_number(fleet, statement, &claimed_by, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status, "the command has ended already");
    }
    return status != SJ_OK || claimed_by == instance
               ? status
               : sj_fail(error, SJ_EEXIST, "another daemon with this device's identity runs it");
}

sj_status sj_fleet_note_copy(sj_fleet *fleet, int64_t device_id, sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_copy_note_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, sj_fleet_now_ns());
    return sj_fleet_finish_statement(fleet, statement, error);
}

sj_status sj_fleet_next_for_collector(sj_fleet *fleet, int64_t after, sj_fleet_command *command,
                                      sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "SELECT command_id, device_id, timeout_ms, kind, arguments"
                            " FROM commands WHERE state = 'preparing' AND command_id > ?1"
                            " ORDER BY command_id LIMIT 1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, after);
    return read_command(fleet, statement, command, error);
}

sj_status sj_fleet_finish(sj_fleet *fleet, int64_t device_id, uint64_t command_id, bool has_failed,
                          const char *result, sj_error *error)
{
    sqlite3_stmt *statement;
    /* A result after the timeout is stored. A second result is not. */
    SJ_TRY(sj_fleet_prepare(
        fleet,
        "UPDATE commands SET state = ?3, result = ?4, finished_realtime_ns = ?5"
        " WHERE command_id = ?2 AND device_id = ?1 AND state IN ('preparing', 'sent', 'timed_out')",
        &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, (int64_t)(command_id & INT64_MAX));
    sqlite3_bind_text(statement, 3, has_failed ? "failed" : "done", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, result, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 5, sj_fleet_now_ns());
    return sj_fleet_finish_statement(fleet, statement, error);
}

sj_status sj_fleet_note_file(sj_fleet *fleet, int64_t command_id, int64_t bytes, sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, "UPDATE commands SET file_bytes = ?2 WHERE command_id = ?1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, command_id);
    sqlite3_bind_int64(statement, 2, bytes);
    return sj_fleet_finish_statement(fleet, statement, error);
}

sj_status sj_fleet_may_fetch(sj_fleet *fleet, int64_t device_id, uint64_t file, sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t found = 0;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "SELECT 1 FROM commands WHERE device_id = ?1 AND kind = 'write'"
                            " AND state IN ('queued', 'sent') AND state = 'sent'"
                            " AND arguments ->> 'file' = ?2 LIMIT 1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_int64(statement, 2, (int64_t)(file & INT64_MAX));
    const sj_status status = sj_fleet_read_number(fleet, statement, &found, error);
    return status == SJ_ENOTFOUND
               ? sj_fail(error, SJ_EPERM, "the device was not sent a command with this file")
               : status;
}

sj_status sj_fleet_expire(sj_fleet *fleet, sj_error *error)
{
    sqlite3_stmt *statement;
    int64_t late = 0;
    SJ_TRY(sj_fleet_prepare(fleet,
                            "SELECT 1 FROM commands WHERE state IN ('preparing', 'queued', 'sent')"
                            " AND created_realtime_ns + timeout_ms * 1000000 < ?1 LIMIT 1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, sj_fleet_now_ns());
    const sj_status status = sj_fleet_read_number(fleet, statement, &late, error);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    SJ_TRY(sj_fleet_prepare(fleet, sj_fleet_commands_expire_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, sj_fleet_now_ns());
    return sj_fleet_finish_statement(fleet, statement, error);
}
