#include "agent/registry/map_globals_report.h"

#include "agent/objfile/map_globals.h"
#include "agent/session/json_report.h"

#include <jansson.h>
#include <string.h>

/* JSON needs at most six bytes for one byte of a name. GLOBAL_BYTES is for the other parts of an
 * entry. */
enum { ESCAPED_BYTES = 6, GLOBAL_BYTES = 80, PAYLOAD_BYTES = SJ_REPORT_MAX_BYTES - 1024 };

typedef struct globals_report {
    sj_frame_writer *writer;
    uint64_t now_ticks;
    uint32_t module;
    json_int_t left_out;
    json_t *globals;
    size_t bytes; /* upper bound of the size of `globals` as text */
} globals_report;

/* Sends a report and releases `payload`. `payload` NULL: it could not be allocated. */
static sj_status send_payload(const globals_report *report, json_t *payload)
{
    const sj_report sent = {.ticks = report->now_ticks, .monitor = "map", .kind = "globals"};
    return sj_json_report_send(report->writer, sent, payload);
}

/* Sends the collected globals and clears the list. */
static sj_status send_globals(globals_report *report)
{
    const sj_status status =
        send_payload(report, json_pack("{s:I, s:O, s:I}", "module", (json_int_t)report->module,
                                       "globals", report->globals, "left_out", report->left_out));
    json_array_clear(report->globals);
    report->bytes = 0;
    report->left_out = 0;
    return status;
}

/* Adds a global. Counts a global that a report cannot hold: its name is too long or not UTF-8, or a
 * number is damaged. */
static sj_status add_global(globals_report *report, const sj_symbol *symbol)
{
    const size_t bytes = strlen(symbol->name) * ESCAPED_BYTES + GLOBAL_BYTES;
    json_t *name =
        bytes <= PAYLOAD_BYTES && symbol->address <= INT64_MAX && symbol->size <= INT64_MAX
            ? json_string(symbol->name)
            : NULL;
    if (name == NULL) {
        report->left_out++;
        return SJ_OK;
    }
    sj_status status = report->bytes + bytes > PAYLOAD_BYTES ? send_globals(report) : SJ_OK;
    if (status != SJ_OK) {
        json_decref(name);
        return status;
    }
    report->bytes += bytes;
    json_t *global = json_pack("{s:o, s:I, s:I}", "name", name, "offset",
                               (json_int_t)symbol->address, "size", (json_int_t)symbol->size);
    return json_array_append_new(report->globals, global) == 0 ? SJ_OK : SJ_ENOMEM;
}

static sj_status report_all(globals_report *report, const sj_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        SJ_TRY(add_global(report, &symbols->items[i]));
    }
    return send_globals(report);
}

sj_status sj_map_globals_report(sj_frame_writer *writer, const char *program, const char *map_file,
                                uint32_t module, uint64_t now_ticks)
{
    sj_map_globals globals;
    sj_error error = {0};
    globals_report report = {
        .writer = writer, .now_ticks = now_ticks, .module = module, .globals = json_array()};
    if (report.globals == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_map_globals_read(program, map_file, &globals, &error);
    if (status == SJ_OK) {
        status = report_all(&report, &globals.symbols);
        sj_map_globals_deinit(&globals);
    } else {
        status = send_payload(&report,
                              json_pack("{s:I, s:O, s:s}", "module", (json_int_t)module, "globals",
                                        report.globals, "error", sj_status_text(status)));
    }
    json_decref(report.globals);
    return status;
}
