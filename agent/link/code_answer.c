#include "agent/link/code_answer.h"

#include "agent/link/memory_file.h"

#include <stdlib.h>
#include <string.h>

sj_status sj_link_plan_code(sj_registry *registry, uint64_t process, sj_reader *reader, int file,
                            sj_plan_answer *answer)
{
    sj_link_code code;
    const uint8_t *head = sj_reader_take(reader, sizeof(code));
    if (head == NULL || !sj_memory_file_is(file)) {
        return SJ_ECORRUPT;
    }
    memcpy(&code, head, sizeof(code));
    if (code.file_bytes == 0 || code.file_bytes > SJ_LINK_CODE_BYTES) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = malloc(code.file_bytes);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_ECORRUPT;
    if (sj_memory_file_read(file, bytes, code.file_bytes)) {
        const sj_slice slice = {.data = bytes, .size = code.file_bytes};
        status = code.skip == SJ_SKIP_NONE
                     ? sj_registry_plan_generated(registry, process, slice, code.count, answer)
                     : sj_registry_skip_generated(registry, process, slice, code.count, code.skip);
    }
    free(bytes);
    return status == SJ_OK && code.skip != SJ_SKIP_NONE ? SJ_EUNSUPPORTED : status;
}
