/* Reports runtimes whose methods are not recorded because the recording counts calls. */
#include "agent/registry/registry_internal.h"

#include <stdio.h>
#include <string.h>

static bool is_of_runtime(const sj_runtime *runtime, const sj_plan_request *request)
{
    const char *slash = strrchr(request->path, '/');
    const char *name = slash != NULL ? slash + 1 : request->path;
    bool is_launcher = false;
    for (size_t i = 0; request->module->is_main != 0 && runtime->launchers != NULL &&
                       runtime->launchers[i] != NULL && !is_launcher;
         i++) {
        is_launcher = strcmp(name, runtime->launchers[i]) == 0;
    }
    return is_launcher || sj_runtime_has_file(runtime, name);
}

static sj_status report_uncounted(sj_registry *registry, const sj_runtime *runtime,
                                  const sj_plan_request *request)
{
    static const char json[] =
        "{\"reason\": \"calls are counted (clock: adaptive), which is not possible for methods\"}";
    const sj_report report = {.ticks = request->now_ticks,
                              .process = request->process,
                              .monitor = runtime->name,
                              .kind = "refused",
                              .json = json,
                              .json_bytes = sizeof(json) - 1};
    char *first = registry->counters.unrecorded_runtime;
    if (first[0] == '\0') {
        snprintf(first, sizeof(registry->counters.unrecorded_runtime), "%s", runtime->name);
    }
    /* If the spool is full, the store finds a gap in the numbers of reports. */
    const sj_status status = sj_frame_writer_report(registry->options.writer, &report);
    return status == SJ_EFULL ? SJ_OK : status;
}

sj_status sj_registry_report_uncounted(sj_registry *registry, const sj_plan_request *request)
{
    if (!registry->options.counts_calls || request->process == 0 ||
        request->process > registry->process_count) {
        return SJ_OK;
    }
    bool *lacks = registry->processes[request->process - 1].lacks;
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        const sj_runtime *runtime = sj_runtimes[i];
        if (runtime->monitor_bit != 0 && !lacks[i] && is_of_runtime(runtime, request)) {
            lacks[i] = true;
            SJ_TRY(report_uncounted(registry, runtime, request));
        }
    }
    return SJ_OK;
}
