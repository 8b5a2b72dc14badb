#include "agent/link/stall.h"

#include "agent/host/clock.h"
#include "agent/link/memory_file.h"

#include <stdlib.h>
#include <string.h>

static sj_status read_head(sj_reader *reader, sj_link_stall *head, sj_reported_stall *stall)
{
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(*head));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(head, bytes, sizeof(*head));
    *stall = (sj_reported_stall){.waited_ns = head->waited_ns};
    if (head->name_bytes == 0 || head->name_bytes > SJ_LINK_MARK_NAME_BYTES ||
        head->name_bytes != sj_reader_left(reader) || head->report_bytes == 0 ||
        head->report_bytes > SJ_REPORT_MAX_BYTES) {
        return SJ_ECORRUPT;
    }
    memcpy(stall->name, sj_read_bytes(reader, head->name_bytes), head->name_bytes);
    return strlen(stall->name) == head->name_bytes ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_link_read_stall(sj_registry *registry, uint64_t process, sj_reader *reader, int file,
                             sj_reported_stall *stall)
{
    sj_link_stall head;
    SJ_TRY(read_head(reader, &head, stall));
    if (!sj_memory_file_is(file)) {
        return SJ_ECORRUPT;
    }
    uint8_t *report = malloc(head.report_bytes);
    if (report == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_ECORRUPT;
    if (sj_memory_file_read(file, report, head.report_bytes)) {
        const sj_slice json = {.data = report, .size = head.report_bytes};
        status = sj_registry_report_stall(registry, process, json, sj_clock_ticks());
    }
    free(report);
    return status == SJ_EFULL ? SJ_OK : status;
}
