#include "collector-server/fleet/control.h"

#include "collector-server/fleet/command_kinds.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_internal.h"
#include "collector-server/fleet/fleet_policies.h"

#include <stdlib.h>
#include <string.h>

/* A request while it is carried out. */
typedef struct giving {
    sj_fleet *fleet;
    const sj_control_request *request;
    const sj_command_kind *kind;
    const json_t *arguments;
    const char *text; /* the arguments as JSON text */
    uint32_t timeout_ms;
    json_t *given;
} giving;

/* Appends a command that was stored, with its device, to the response. */
static sj_status note_given(giving *all, int64_t command_id, sj_error *error)
{
    sqlite3_stmt *statement;
    sj_status status = SJ_OK;
    SJ_TRY(sj_fleet_prepare(all->fleet,
                            "SELECT c.device_id, d.name FROM commands c JOIN devices d"
                            " USING (device_id) WHERE c.command_id = ?1",
                            &statement, error));
    sqlite3_bind_int64(statement, 1, command_id);
    const int step = sqlite3_step(statement);
    if (step == SQLITE_DONE) {
        status = sj_fail(error, SJ_ENOTFOUND, "the device of command %lld no longer exists",
                         (long long)command_id);
    } else if (step != SQLITE_ROW) {
        status = sj_fleet_failed(all->fleet, error);
    } else {
        json_array_append_new(all->given,
                              json_pack("{sI sI ss}", "command", (json_int_t)command_id,
                                        "device_id", (json_int_t)sqlite3_column_int64(statement, 0),
                                        "device", (const char *)sqlite3_column_text(statement, 1)));
    }
    sqlite3_finalize(statement);
    return status;
}

static sj_status add_command(giving *all, int64_t device_id, int64_t *command_id, sj_error *error)
{
    const sj_fleet_new_command new_command = {.device_id = device_id,
                                              .kind = all->kind->name,
                                              .arguments = all->text,
                                              .requested_by = all->request->requested_by,
                                              .timeout_ms = all->timeout_ms,
                                              .is_for_collector =
                                                  all->kind->place != SJ_COMMAND_ON_DEVICE};
    SJ_TRY(sj_fleet_command_add(all->fleet, &new_command, command_id, error));
    return note_given(all, *command_id, error);
}

/* Stores the command as finished, because the collector itself changes the tags. Then sends the
 * device the policies that its new tags select. */
static sj_status tag_device(giving *all, int64_t device_id, sj_error *error)
{
    int64_t command_id = 0;
    int64_t policies = 0;
    SJ_TRY(add_command(all, device_id, &command_id, error));
    const sj_status status =
        sj_fleet_tag(all->fleet, device_id, json_object_get(all->arguments, "tags"), error);
    SJ_TRY(sj_fleet_finish(all->fleet, device_id, (uint64_t)command_id, status != SJ_OK,
                           status != SJ_OK ? error->text : "{}", error));
    SJ_TRY(status);
    return sj_fleet_policies_sync(all->fleet, device_id, NULL, all->request->requested_by,
                                  all->timeout_ms, &policies, error);
}

static sj_status set_quota(giving *all, int64_t device_id, sj_error *error)
{
    int64_t command_id = 0;
    SJ_TRY(add_command(all, device_id, &command_id, error));
    const sj_status status = sj_fleet_set_quota(all->fleet, device_id, all->arguments,
                                                all->request->requested_by, error);
    SJ_TRY(sj_fleet_finish(all->fleet, device_id, (uint64_t)command_id, status != SJ_OK,
                           status != SJ_OK ? error->text : "{}", error));
    return status;
}

static sj_status set_policy(giving *all, const sj_fleet_set *set, sj_error *error)
{
    size_t index;
    json_t *command;
    json_t *commands = NULL;
    const char *app = json_string_value(json_object_get(all->arguments, "app"));
    const sj_fleet_rule rule = {.set = set,
                                .app = app != NULL ? app : "",
                                .policy = json_object_get(all->arguments, "policy"),
                                .set_by = all->request->requested_by,
                                .timeout_ms = all->timeout_ms};
    SJ_TRY(sj_fleet_rule_put(all->fleet, &rule, &commands, error));
    sj_status status = SJ_OK;
    json_array_foreach(commands, index, command)
    {
        if (status == SJ_OK) {
            status = note_given(all, json_integer_value(command), error);
        }
    }
    json_decref(commands);
    return status;
}

static sj_status give_one(giving *all, int64_t device_id, sj_error *error)
{
    int64_t command_id = 0;
    return strcmp(all->kind->name, "tags") == 0 ? tag_device(all, device_id, error)
           : strcmp(all->kind->name, "quota") == 0
               ? set_quota(all, device_id, error)
               : add_command(all, device_id, &command_id, error);
}

static sj_status give_to(giving *all, const sj_fleet_set *set, sj_error *error)
{
    sj_status status = SJ_OK;
    if (strcmp(all->kind->name, "policy") == 0) {
        return set_policy(all, set, error);
    }
    if (set->count == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "no enrolled device is meant by \"%.100s\"",
                       all->request->devices);
    }
    for (size_t i = 0; i < set->count && status == SJ_OK; i++) {
        status = give_one(all, set->devices[i], error);
    }
    return status;
}

static sj_status check_time(giving *all, sj_error *error)
{
    const int64_t timeout_ms = all->request->timeout_ms;
    if (timeout_ms < 0 || timeout_ms > SJ_COMMAND_TIMEOUT_MAX_MS) {
        return sj_fail(error, SJ_EINVAL, "the time-out has to be from 1 to %d ms",
                       (int)SJ_COMMAND_TIMEOUT_MAX_MS);
    }
    all->timeout_ms = timeout_ms != 0 ? (uint32_t)timeout_ms : all->kind->timeout_ms;
    return SJ_OK;
}

sj_status sj_control_give(sj_fleet *fleet, const sj_control_request *request, json_t **given,
                          sj_error *error)
{
    sj_fleet_set set;
    json_t *none = json_object();
    giving all = {.fleet = fleet,
                  .request = request,
                  .kind = sj_command_kind_find(request->kind, error),
                  .arguments = request->arguments != NULL ? request->arguments : none};
    sj_status status = all.kind != NULL ? SJ_OK : SJ_EUNSUPPORTED;
    if (status == SJ_OK) {
        status = check_time(&all, error);
    }
    if (status == SJ_OK) {
        status = sj_command_kind_check(all.kind, all.arguments, error);
    }
    if (status == SJ_OK) {
        status = sj_fleet_find_set(fleet, request->devices, &set, error);
    }
    if (status == SJ_OK) {
        char *text = json_dumps(all.arguments, JSON_COMPACT);
        all.text = text;
        all.given = json_array();
        status = text != NULL && all.given != NULL ? give_to(&all, &set, error)
                                                   : sj_fail(error, SJ_ENOMEM, "out of memory");
        free(text);
        sj_fleet_set_deinit(&set);
    }
    json_decref(none);
    if (status != SJ_OK) {
        json_decref(all.given);
        return status;
    }
    *given = all.given;
    return SJ_OK;
}
