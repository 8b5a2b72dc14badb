#include "collector-server/cli/commands.h"

#include "agent/policy/nearest.h"

#include <stddef.h>
#include <string.h>

const sj_command *const sj_commands[] = {
    /* a line each */
    /* clang-format off */
    &sj_command_record,
    &sj_command_attach,
    &sj_command_detach,
    &sj_command_ps,
    &sj_command_mark,
    &sj_command_policy,
    &sj_command_trigger,
    &sj_command_functions,
    &sj_command_flush,
    &sj_command_devices,
    &sj_command_device,
    &sj_command_doctor,
    &sj_command_sessions,
    &sj_command_session,
    &sj_command_report,
    &sj_command_tree,
    &sj_command_flame,
    &sj_command_diff,
    &sj_command_check,
    &sj_command_sql,
    &sj_command_export,
    &sj_command_symbols,
    &sj_command_verify,
    &sj_ui_command,
    &sj_command_help_page,
    &sj_command_version,
    NULL,
    /* clang-format on */
};

enum { COMMANDS_MAX = 64 };

const sj_command *sj_command_find(const char *name)
{
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        if (strcmp(sj_commands[i]->name, name) == 0) {
            return sj_commands[i];
        }
    }
    return NULL;
}

const char *sj_command_nearest(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    while (sj_commands[count] != NULL && count < COMMANDS_MAX) {
        names[count] = sj_commands[count]->name;
        count++;
    }
    return sj_nearest(name, names, count);
}
