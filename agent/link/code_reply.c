#include "agent/link/code_reply.h"

#include "agent/link/memory_file.h"

#include <stdlib.h>
#include <string.h>

static sj_status plan_bytes(sj_registry *registry, uint64_t process, const sj_link_code *code,
                            sj_slice bytes, sj_plan_reply *reply)
{
    if (code->skip == SJ_SKIP_NONE) {
        return sj_registry_plan_generated(registry, process, bytes, code->count, reply);
    }
    SJ_TRY(sj_registry_skip_generated(registry, process, bytes, code->count, code->skip));
    return SJ_EUNSUPPORTED;
}

static sj_status plan_file(sj_registry *registry, uint64_t process, const sj_link_code *code,
                           int file, sj_plan_reply *reply)
{
    if (!sj_memory_file_is(file)) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = malloc(code->file_bytes);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_ECORRUPT;
    if (sj_memory_file_read(file, bytes, code->file_bytes)) {
        const sj_slice slice = {.data = bytes, .size = code->file_bytes};
        status = plan_bytes(registry, process, code, slice, reply);
    }
    free(bytes);
    return status;
}

sj_status sj_link_plan_code(sj_registry *registry, uint64_t process, sj_reader *reader, int file,
                            sj_plan_reply *reply)
{
    sj_link_code code;
    const uint8_t *head = sj_read_bytes(reader, sizeof(code));
    if (head == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&code, head, sizeof(code));
    if (code.file_bytes == 0 || code.file_bytes > SJ_LINK_CODE_BYTES) {
        return SJ_ECORRUPT;
    }
    if (file >= 0) {
        return plan_file(registry, process, &code, file, reply);
    }
    const sj_slice slice = {.data = sj_read_bytes(reader, code.file_bytes),
                            .size = code.file_bytes};
    return slice.data != NULL ? plan_bytes(registry, process, &code, slice, reply) : SJ_ECORRUPT;
}
