#include "agent/session/json_report.h"

#include <stdlib.h>
#include <string.h>

sj_status sj_json_report_send(sj_frame_writer *writer, sj_report report, json_t *payload)
{
    char *json = payload != NULL ? json_dumps(payload, JSON_COMPACT) : NULL;
    json_decref(payload);
    if (json == NULL) {
        return SJ_ENOMEM;
    }
    report.json = json;
    report.json_bytes = strlen(json);
    const sj_status status = sj_frame_writer_report(writer, &report);
    free(json);
    return status;
}
