#include "agent/registry/types_report.h"

#include "agent/host/clock.h"
#include "agent/session/json_report.h"

#include <string.h>

/* JSON needs at most six bytes for one byte of a text. VALUE_BYTES covers the rest of an entry. */
enum { ESCAPED_BYTES = 6, VALUE_BYTES = 80, PAYLOAD_BYTES = SJ_REPORT_MAX_BYTES - 1024 };

sj_status sj_types_report_begin(sj_types_report *report, sj_frame_writer *writer, uint32_t module)
{
    *report = (sj_types_report){.writer = writer, .module = module, .functions = json_array()};
    return report->functions != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status send_report(sj_types_report *report)
{
    json_t *payload = json_pack("{s:I, s:O}", "module", (json_int_t)report->module, "functions",
                                report->functions);
    const sj_report sent = {.ticks = sj_clock_ticks(), .monitor = "values", .kind = "types"};
    const sj_status status = sj_json_report_send(report->writer, sent, payload);
    if (status == SJ_ENOMEM) {
        return status;
    }
    json_array_clear(report->functions);
    report->bytes = 0;
    return status == SJ_EFULL ? SJ_OK : status;
}

/* Returns a text as JSON; "" if it is not UTF-8. */
static json_t *text_of(const char *text)
{
    json_t *made = json_string(text);
    return made != NULL ? made : json_string("");
}

static sj_status add_value(json_t *values, const sj_typed_value *value)
{
    static const char *const states[SJ_TYPED_STATES] = {"recorded", "unknown", "unsupported"};
    json_t *item = json_pack(
        "{s:I, s:o, s:o, s:s}", "position", (json_int_t)sj_value_position(value->descriptor),
        "name", text_of(value->name), "type", text_of(value->type), "state", states[value->state]);
    return item != NULL && json_array_append_new(values, item) == 0 ? SJ_OK : SJ_ENOMEM;
}

sj_status sj_types_report_add(sj_types_report *report, uint64_t offset,
                              const sj_typed_function *typed)
{
    size_t bytes = VALUE_BYTES;
    for (size_t i = 0; i < typed->count; i++) {
        const sj_typed_value *value = &typed->values[i];
        bytes += (strlen(value->name) + strlen(value->type)) * ESCAPED_BYTES + VALUE_BYTES;
    }
    SJ_TRY(report->bytes + bytes > PAYLOAD_BYTES ? send_report(report) : SJ_OK);
    report->bytes += bytes;
    json_t *values = json_array();
    json_t *function = json_pack("{s:I, s:o}", "offset", (json_int_t)offset, "values", values);
    if (function == NULL || json_array_append_new(report->functions, function) != 0) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < typed->count; i++) {
        SJ_TRY(add_value(values, &typed->values[i]));
    }
    return SJ_OK;
}

sj_status sj_types_report_end(sj_types_report *report, sj_status status)
{
    if (status == SJ_OK && json_array_size(report->functions) != 0) {
        status = send_report(report);
    }
    json_decref(report->functions);
    return status;
}
