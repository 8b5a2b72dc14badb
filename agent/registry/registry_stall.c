#include "agent/registry/registry_internal.h"

#include <jansson.h>

sj_status sj_registry_report_stall(sj_registry *registry, uint64_t process, sj_slice json,
                                   uint64_t now_ticks)
{
    const sj_report report = {.ticks = now_ticks,
                              .process = process,
                              .monitor = "stall",
                              .kind = "threads",
                              .json = (const char *)json.data,
                              .json_bytes = json.size};
    json_t *read = json_loadb(report.json, report.json_bytes, 0, NULL);
    const bool is_object = json_is_object(read);
    json_decref(read);
    return is_object ? sj_frame_writer_report(registry->options.writer, &report) : SJ_ECORRUPT;
}
