#include "agent/registry/method_code.h"

#include "agent/session/json_report.h"
#include "proto/base/array.h"

#include <jansson.h>
#include <stdlib.h>

enum {
    ENTRY_BYTES = 64,                                /* upper bound of an entry as text */
    AT_ONCE = SJ_REPORT_MAX_BYTES / ENTRY_BYTES - 16 /* most entries of one report */
};

/* Returns an array of [function, address, bytes], or NULL if out of memory. */
static json_t *list(const sj_method_code *code)
{
    json_t *all = json_array();
    for (size_t i = 0; i < code->count; i++) {
        json_t *entry =
            json_pack("[I, I, I]", (json_int_t)code->items[i].function,
                      (json_int_t)code->items[i].address, (json_int_t)code->items[i].bytes);
        if (json_array_append_new(all, entry) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

sj_status sj_method_code_report(sj_method_code *code, sj_frame_writer *writer, uint64_t now_ticks)
{
    if (code->count == 0) {
        return SJ_OK;
    }
    json_t *all = list(code);
    json_t *payload = all != NULL ? json_pack("{s:o}", "code", all) : NULL;
    const sj_report report = {
        .ticks = now_ticks, .process = code->process, .monitor = "methods", .kind = "code"};
    const sj_status status = sj_json_report_send(writer, report, payload);
    if (status == SJ_ENOMEM) {
        return status;
    }
    code->count = 0;
    return status == SJ_EFULL ? SJ_OK : status; /* the writer counts a report that does not fit */
}

sj_status sj_method_code_add(sj_method_code *code, sj_frame_writer *writer, uint64_t process,
                             const sj_generated_function *functions, size_t count,
                             uint64_t now_ticks)
{
    if (process != code->process) {
        SJ_TRY(sj_method_code_report(code, writer, now_ticks));
        code->process = process;
    }
    for (size_t i = 0; i < count; i++) {
        if (code->count == AT_ONCE) {
            SJ_TRY(sj_method_code_report(code, writer, now_ticks));
        }
        SJ_TRY(
            sj_array_reserve(&code->items, &code->capacity, code->count, 1, sizeof(*code->items)));
        code->items[code->count].address = functions[i].address;
        code->items[code->count].bytes = functions[i].size;
        code->items[code->count++].function = functions[i].function;
    }
    return SJ_OK;
}

void sj_method_code_deinit(sj_method_code *code)
{
    free(code->items);
    *code = (sj_method_code){0};
}
