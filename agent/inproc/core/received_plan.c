#include "agent/inproc/core/received_plan.h"

#include "agent/inproc/core/module_file.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* Maps a plan file for reading, and fills in its identity. Returns NULL on failure. */
static void *map_plan(const char *path, sj_ready_plan *identity)
{
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) {
        return NULL;
    }
    void *bytes = NULL;
    if (sj_ready_identify((int)file, identity) && identity->bytes > 0) {
        bytes =
            sj_sys_map(NULL, identity->bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, (int)file, 0);
        bytes = sj_sys_failed(bytes) ? NULL : bytes;
    }
    (void)sj_sys_close((int)file);
    return bytes;
}

sj_status sj_received_plan_read(const sj_link *link, sj_received_plan *plan)
{
    static _Alignas(16) uint8_t buffer[SJ_LINK_PLAN_BYTES];
    static char path[SJ_MODULE_PATH_BYTES];
    if (link->packet.payload_bytes < sizeof(plan->head)) {
        return SJ_ECORRUPT;
    }
    const uint8_t *payload = link->payload;
    memcpy(&plan->head, payload, sizeof(plan->head));
    const uint32_t bytes = link->packet.payload_bytes - (uint32_t)sizeof(plan->head);
    if (plan->head.path_bytes == 0 && bytes <= sizeof(buffer)) {
        memcpy(buffer, payload + sizeof(plan->head), bytes);
        plan->bytes = buffer;
        plan->size_bytes = bytes;
        return SJ_OK;
    }
    if (plan->head.path_bytes != bytes || bytes >= sizeof(path)) {
        return SJ_ECORRUPT;
    }
    memcpy(path, payload + sizeof(plan->head), bytes);
    path[bytes] = '\0';
    plan->path = path;
    return SJ_OK;
}

void sj_received_plan_map(sj_received_plan *plan)
{
    if (plan->path != NULL) {
        plan->bytes = map_plan(plan->path, &plan->file);
        plan->size_bytes = plan->file.bytes;
        plan->is_mapped = plan->bytes != NULL;
    }
}
