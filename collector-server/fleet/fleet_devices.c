#include "collector-server/fleet/fleet_devices.h"

#include "collector-server/fleet/fleet_internal.h"
#include "collector-server/store/sql.h"
#include "schema/queries/fleet/fleet_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sj_status sj_fleet_find_device(sj_fleet *fleet, const char *wanted, int64_t *device_id,
                               sj_error *error)
{
    sj_sql_numbers found = {0};
    const sj_status status = sj_sql_list_numbers(
        fleet->database,
        "SELECT device_id FROM devices WHERE name = ?1"
        " OR CAST(device_id AS TEXT) = ?1"
        " OR (length(?1) >= 4 AND hex(uuid) LIKE ?1 || '%' AND ?1 NOT GLOB '*[%_]*')",
        SJ_SQL_TEXT(wanted), &found, error);
    const size_t count = found.count;
    *device_id = count != 0 ? found.values[0] : 0;
    free(found.values);
    SJ_TRY(status);
    if (count == 0) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "no device matches \"%s\"; `sojourn devices` lists them", wanted);
    }
    return count == 1 ? SJ_OK
                      : sj_fail(error, SJ_EINVAL,
                                "%zu devices are called \"%s\"; name one by its id or the "
                                "beginning of its UUID (`sojourn devices`)",
                                count, wanted);
}

static sj_status add_device(void *context, sqlite3_stmt *row)
{
    sj_fleet_set *set = context;
    if (set->count == SJ_FLEET_SET_MAX) {
        return SJ_ELIMIT;
    }
    set->devices[set->count++] = sqlite3_column_int64(row, 0);
    return SJ_OK;
}

/* Reads the device_ids that a statement returns into the set. */
static sj_status read_devices(sqlite3_stmt *statement, sj_fleet_set *set, sj_error *error)
{
    set->devices = calloc(SJ_FLEET_SET_MAX, sizeof(*set->devices));
    sj_status status = set->devices != NULL ? sj_sql_each_row(statement, add_device, set, error)
                                            : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status == SJ_ELIMIT) {
        sj_fail(error, status, "more than %d devices; name fewer by a tag", (int)SJ_FLEET_SET_MAX);
    }
    sqlite3_finalize(statement);
    if (status != SJ_OK) {
        sj_fleet_set_deinit(set);
    }
    return status;
}

static sj_status find_tagged(sj_fleet *fleet, const char *tag, sj_fleet_set *set, sj_error *error)
{
    sqlite3_stmt *statement;
    const char *equals = strchr(tag, '=');
    if (tag[0] == '\0' || tag[0] == '=' || strlen(tag) >= sizeof(set->subject)) {
        return sj_fail(error, SJ_EINVAL,
                       "\"tag:%.64s\" names no tag; write tag:KEY or "
                       "tag:KEY=VALUE",
                       tag);
    }
    SJ_TRY(sj_fleet_prepare(
        fleet,
        "SELECT DISTINCT d.device_id FROM devices d JOIN device_tokens t USING (device_id),"
        " json_each(d.tags) AS tag WHERE t.revoked_realtime_ns IS NULL AND tag.key = ?1"
        " AND (?2 IS NULL OR CAST(tag.value AS TEXT) = ?2) ORDER BY d.device_id",
        &statement, error));
    snprintf(set->subject, sizeof(set->subject), "%s", tag);
    sqlite3_bind_text(statement, 1, tag, equals != NULL ? (int)(equals - tag) : -1, SQLITE_STATIC);
    if (equals != NULL) {
        sj_fleet_bind_text(statement, 2, equals + 1);
    }
    return read_devices(statement, set, error);
}

sj_status sj_fleet_find_set(sj_fleet *fleet, const char *wanted, sj_fleet_set *set, sj_error *error)
{
    static const char tag[] = "tag:";
    sqlite3_stmt *statement;
    *set = (sj_fleet_set){.scope = SJ_FLEET_DEVICE};
    if (strncmp(wanted, tag, sizeof(tag) - 1) == 0) {
        set->scope = SJ_FLEET_TAG;
        return find_tagged(fleet, wanted + sizeof(tag) - 1, set, error);
    }
    if (strcmp(wanted, "all") == 0) {
        set->scope = SJ_FLEET_ALL;
        SJ_TRY(sj_fleet_prepare(fleet,
                                "SELECT device_id FROM device_tokens"
                                " WHERE revoked_realtime_ns IS NULL ORDER BY device_id",
                                &statement, error));
        return read_devices(statement, set, error);
    }
    int64_t device_id = 0;
    SJ_TRY(sj_fleet_find_device(fleet, wanted, &device_id, error));
    set->devices = malloc(sizeof(*set->devices));
    if (set->devices == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    set->devices[set->count++] = device_id;
    snprintf(set->subject, sizeof(set->subject), "%" PRId64, device_id);
    return SJ_OK;
}

void sj_fleet_set_deinit(sj_fleet_set *set)
{
    free(set->devices);
    set->devices = NULL;
    set->count = 0;
}

sj_status sj_fleet_tag(sj_fleet *fleet, int64_t device_id, const json_t *changes, sj_error *error)
{
    sqlite3_stmt *statement;
    const char *key;
    json_t *value;
    SJ_TRY(sj_fleet_begin(fleet, error));
    sj_status status = SJ_OK;
    json_object_foreach((json_t *)(uintptr_t)changes, key, value)
    {
        if (status == SJ_OK) {
            /* Uses json_set, because json_patch would drop a null. */
            status = sj_fleet_prepare(fleet,
                                      "UPDATE devices SET collector_tags ="
                                      " json_set(collector_tags, '$.\"' || ?2 || '\"', ?3)"
                                      " WHERE device_id = ?1",
                                      &statement, error);
        }
        if (status == SJ_OK) {
            sqlite3_bind_int64(statement, 1, device_id);
            sj_fleet_bind_text(statement, 2, key);
            sqlite3_bind_text(statement, 3, json_string_value(value), -1, SQLITE_STATIC);
            status = sj_fleet_finish_statement(fleet, statement, error);
        }
    }
    if (status == SJ_OK) {
        status = sj_fleet_prepare(fleet,
                                  "UPDATE devices SET tags = json_patch(own_tags, collector_tags)"
                                  " WHERE device_id = ?1",
                                  &statement, error);
    }
    if (status == SJ_OK) {
        sqlite3_bind_int64(statement, 1, device_id);
        status = sj_fleet_finish_statement(fleet, statement, error);
    }
    return sj_fleet_end(fleet, status, error);
}

static void bind_limit(sqlite3_stmt *statement, int place, const json_t *quota, const char *name)
{
    const json_t *limit = json_object_get(quota, name);
    if (json_is_true(json_object_get(quota, "unlimited"))) {
        sqlite3_bind_int64(statement, place, 0);
    } else if (limit != NULL) {
        sqlite3_bind_int64(statement, place, json_integer_value(limit));
    }
}

static sj_status put_quota(sj_fleet *fleet, int64_t device_id, const json_t *quota, const char *by,
                           sj_error *error)
{
    sqlite3_stmt *statement;
    const bool is_default = json_object_size(quota) == 0;
    SJ_TRY(sj_fleet_prepare(fleet, is_default ? sj_fleet_quota_remove_sql : sj_fleet_quota_put_sql,
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    if (!is_default) {
        bind_limit(statement, 2, quota, "bytes");
        bind_limit(statement, 3, quota, "sessions");
        sj_fleet_bind_text(statement, 4, by);
        sqlite3_bind_int64(statement, 5, sj_fleet_now_ns());
    }
    return sj_fleet_finish_statement(fleet, statement, error);
}

/* Makes the device not count as refused until its next frame is refused by the new quota. */
static sj_status forget_refusals(sj_fleet *fleet, int64_t device_id, sj_error *error)
{
    sqlite3_stmt *statement;
    SJ_TRY(sj_fleet_prepare(fleet, "UPDATE device_usage SET refusals = 0 WHERE device_id = ?1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, device_id);
    return sj_fleet_finish_statement(fleet, statement, error);
}

sj_status sj_fleet_set_quota(sj_fleet *fleet, int64_t device_id, const json_t *quota,
                             const char *by, sj_error *error)
{
    if (json_is_true(json_object_get(quota, "unlimited")) && json_object_size(quota) != 1) {
        return sj_fail(error, SJ_EINVAL, "quota: \"unlimited\" excludes the other arguments");
    }
    SJ_TRY(sj_fleet_begin(fleet, error));
    sj_status status = put_quota(fleet, device_id, quota, by, error);
    if (status == SJ_OK) {
        status = forget_refusals(fleet, device_id, error);
    }
    return sj_fleet_end(fleet, status, error);
}
