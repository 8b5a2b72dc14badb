/* Design notes
 *
 * libgcc's unwinder asks the loader for a module's tables by _dl_find_object, without a lock, since
 * GCC 12 and glibc 2.35. A preloaded agent answers in its place for stub areas, also to copies of
 * libgcc that are loaded later or linked into programs. Registration (__register_frame) would take
 * libgcc's lock at each exception, and a handler could meet it. */
#include "agent/inproc/core/find_object.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/hooks/stub_areas.h"

#include <dlfcn.h>
#include <string.h>

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

typedef int find_object(void *address, struct dl_find_object *result);

static find_object *real;

__attribute__((visibility("default"))) int _dl_find_object(void *address,
                                                           struct dl_find_object *result)
{
    uint64_t bytes;
    const uint64_t low = sj_stub_areas_find((uint64_t)(uintptr_t)address, &bytes);
    const sj_stub_area *area = (const void *)(uintptr_t)(low + SJ_STUB_AREA_OFFSET);
    if (low == 0 || area->magic != SJ_STUB_AREA_MAGIC || area->unwind == 0) {
        return real != NULL ? real(address, result) : -1;
    }
    *result =
        (struct dl_find_object){.dlfo_map_start = (void *)(uintptr_t)low,
                                .dlfo_map_end = (void *)(uintptr_t)(low + bytes),
                                .dlfo_link_map = (void *)(uintptr_t)sojourn_agent_state.handle,
                                .dlfo_eh_frame = (void *)(uintptr_t)(low + area->unwind)};
    return 0;
}

void sj_find_object_begin(void)
{
    const uint64_t found = sj_rebind_find("_dl_find_object");
    memcpy(&real, &found, sizeof(real));
}

#else

void sj_find_object_begin(void)
{
}

#endif
