#include "agent/daemon/commands.h"

#include "agent/daemon/command_kinds.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/json_memory.h"

#include <string.h>

sj_status sj_device_command_run_policies(const sj_device_command *command, json_t **result,
                                         sj_error *error)
{
    SJ_TRY(sj_device_policies_keep(command->context->policies, command->arguments, error));
    *result = json_pack("{sI}", "rules",
                        (json_int_t)json_array_size(json_object_get(command->arguments, "rules")));
    return SJ_OK;
}

const char sj_device_command_no_result[] =
    "the command was carried out, but there is no memory for its result";

typedef struct command_kind {
    const char *name;
    sj_device_command_run_fn run;
} command_kind;

static const command_kind kinds[] = {
    {"status", sj_device_command_run_status},
    {"apps", sj_device_command_run_apps},
    {"ps", sj_device_command_run_ps},
    {"sessions", sj_device_command_run_sessions},
    {"doctor", sj_device_command_run_doctor},
    {"prepare", sj_device_command_run_prepare},
    {"launch", sj_device_command_run_launch},
    {"attach", sj_device_command_run_attach},
    {"detach", sj_device_command_run_detach},
    {"stop", sj_device_command_run_stop},
    {"shrink", sj_device_command_run_shrink},
    {"mark", sj_device_command_run_mark},
    {"dump", sj_device_command_run_dump},
    {"write", sj_device_command_run_write},
    {"policies", sj_device_command_run_policies},
};

sj_status sj_device_command_run(const sj_device_command_context *context, const char *kind,
                                const char *arguments, int timeout_ms, json_t **result,
                                sj_error *error)
{
    json_error_t problem;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, kind) != 0) {
            continue;
        }
        json_t *object = sj_json_parse(arguments, &problem);
        if (!json_is_object(object)) {
            const bool has_memory = object != NULL || !sj_json_is_out_of_memory(&problem);
            json_decref(object);
            return has_memory
                       ? sj_fail(error, SJ_EINVAL, "the command's arguments are not a JSON object")
                       : sj_fail(error, SJ_ENOMEM, "out of memory");
        }
        const sj_device_command request = {
            .context = context, .arguments = object, .timeout_ms = timeout_ms};
        const sj_status status = kinds[i].run(&request, result, error);
        json_decref(object);
        return status != SJ_OK || *result != NULL
                   ? status
                   : sj_fail(error, SJ_ENOMEM, "%s", sj_device_command_no_result);
    }
    return sj_fail(error, SJ_EUNSUPPORTED, "this device (version %s) knows no command \"%.32s\"",
                   SJ_VERSION, kind);
}
