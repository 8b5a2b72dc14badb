#include "agent/recording/change_permit.h"
#include "agent/recording/pipeline_state.h"

#include <stdio.h>
#include <stdlib.h>

sj_status sj_changes_start(sj_pipeline *pipeline, const sj_value_rules *wanted,
                           sj_value_rules *places, double ns_per_tick, sj_error *error)
{
    const sj_recording_options *options = &pipeline->options;
    sj_changes_table *table = NULL;
    char program[PATH_MAX] = "";
    char link[64];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)options->attach_pid);
    if (realpath(options->program != NULL ? options->program->binary : link, program) == NULL) {
        return sj_fail(error, SJ_EPERM, "which program would be changed is not known");
    }
    SJ_TRY(sj_change_permit_check(wanted, program, options->asks_user_for_changes, error));
    SJ_TRY(sj_changes_table_new(pipeline->runtime_directory, places, program, ns_per_tick, &table,
                                error));
    pipeline->table = table;
    return SJ_OK;
}
