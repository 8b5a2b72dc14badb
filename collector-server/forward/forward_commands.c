/* Design notes
 *
 * A command has a few hundred bytes and changes a handful of times. One row of the newest
 * version is therefore enough: the cluster replaces rows by (lab, number). A query over the
 * database finds the commands to send. */
#include "collector-server/forward/forward_commands.h"

#include "collector-server/forward/forward_lab.h"
#include "collector-server/forward/forward_months.h"
#include "collector-server/store/database.h"

#include "schema/queries/forward/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 500, CONTENT_BYTES = 160 };

typedef struct owed_command {
    int64_t command_id;
    char content[CONTENT_BYTES];
    int64_t at_ns;
} owed_command;

typedef struct command_batch {
    owed_command owed[BATCH];
    size_t count;
    sj_native_rows rows;
    uint8_t lab[SJ_LAB_ID_BYTES];
} command_batch;

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, sj_database_status(sqlite3_errcode(database)), "forwarding commands: %s",
                   sqlite3_errmsg(database));
}

static sj_status read_owed(void *context, sqlite3_stmt *row)
{
    command_batch *batch = context;
    const sj_owed_commands_row read = sj_read_owed_commands(row);
    owed_command *owed = &batch->owed[batch->count++];
    owed->command_id = read.command_id;
    owed->at_ns = read.at;
    snprintf(owed->content, sizeof(owed->content), "%s", read.content);
    return SJ_OK;
}

static sj_status list_owed(const sj_forward_way *way, command_batch *batch, sj_error *error)
{
    const sj_owed_commands_binds values = {.target = way->name, .most = BATCH};
    batch->count = 0;
    return sj_sql_each(way->reader, sj_owed_commands_sql, sj_bind_owed_commands(&values), read_owed,
                       batch, error);
}

/* Reads the rows of the batch. Commands beyond its months are left for the next batch. */
static sj_status collect(const sj_forward_way *way, command_batch *batch, sj_error *error)
{
    sj_forward_months months = {0};
    const sj_slice lab = {.data = batch->lab, .size = sizeof(batch->lab)};
    uint64_t there = 0;
    SJ_TRY(way->kind->newest_version(way->target, &sj_forward_commands, lab, &there, error));
    sj_native_rows_clear(&batch->rows);
    const uint64_t version = sj_forward_newer_than(there);
    sqlite3_stmt *select = NULL;
    sj_status status = sj_forward_prepare(way->reader, &sj_forward_commands, &select, error);
    size_t taken = 0;
    for (; taken < batch->count && status == SJ_OK; taken++) {
        const owed_command *owed = &batch->owed[taken];
        sj_forward_place place = {.version = version, .day = sj_forward_day(owed->at_ns)};
        if (!sj_forward_months_add(&months, place.day, way->most_months)) {
            break;
        }
        sj_forward_place_own(&place, batch->lab);
        status = sj_forward_collect(select, &sj_forward_commands, owed->command_id, &place,
                                    &batch->rows, error);
    }
    sqlite3_finalize(select);
    batch->count = taken;
    return status;
}

static sj_status note_all(const sj_forward_way *way, const command_batch *batch, sj_error *error)
{
    sqlite3_stmt *insert = NULL;
    bool is_noted = sqlite3_prepare_v2(
                        way->writer, "INSERT OR REPLACE INTO forwarded_commands VALUES (?1,?2,?3)",
                        -1, &insert, NULL) == SQLITE_OK;
    for (size_t i = 0; is_noted && i < batch->count; i++) {
        sqlite3_bind_text(insert, 1, way->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 2, batch->owed[i].command_id);
        sqlite3_bind_text(insert, 3, batch->owed[i].content, -1, SQLITE_STATIC);
        is_noted = sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
    }
    const sj_status status = is_noted ? SJ_OK : fail_sql(way->writer, error);
    sqlite3_finalize(insert);
    return status;
}

static sj_status note_given(const sj_forward_way *way, const command_batch *batch, sj_error *error)
{
    if (sqlite3_exec(way->writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(way->writer, error);
    }
    sj_status status = note_all(way, batch, error);
    if (status == SJ_OK && sqlite3_exec(way->writer, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fail_sql(way->writer, error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(way->writer, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

static sj_status send_batch(const sj_forward_way *way, command_batch *batch, sj_error *error)
{
    SJ_TRY(list_owed(way, batch, error));
    if (batch->count == 0) {
        return SJ_OK;
    }
    SJ_TRY(collect(way, batch, error));
    SJ_TRY(way->kind->write(way->target, &sj_forward_commands, &batch->rows, error));
    return note_given(way, batch, error);
}

sj_status sj_forward_commands_send(const sj_forward_way *way, uint64_t *given, sj_error *error)
{
    command_batch *batch = calloc(1, sizeof(*batch));
    *given = 0;
    if (batch == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory to forward commands");
    }
    sj_status status = sj_forward_lab_read(way->reader, batch->lab, error);
    do {
        status = status == SJ_OK ? send_batch(way, batch, error) : status;
        *given += status == SJ_OK ? batch->count : 0;
    } while (status == SJ_OK && batch->count != 0);
    sj_native_rows_deinit(&batch->rows);
    free(batch);
    return status;
}
