/* Design notes
 *
 * Programs store addresses of methods, for example in collections and autorelease pools. During a
 * detach, a thread that looks up a message may have read the class of a freed object already. So
 * all code and classes whose addresses the program may have are in one mapping, which stays. The
 * next agent finds the mapping by its name and uses it again. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/named_mapping.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

#define MAPPING_NAME "sojourn-objects"
#define MAPPING_MAGIC UINT64_C(0x32524f4f444a5353) /* "SSJDOOR2" */

sj_objc_trampolines *sj_objc_trampolines_now;

_Static_assert(sizeof(sj_objc_trampolines) <= SJ_TRAMPOLINES_DATA_BYTES, "the data fits its page");

static uint8_t *code_of(sj_objc_trampolines *trampolines)
{
    return (uint8_t *)trampolines + SJ_TRAMPOLINES_DATA_BYTES;
}

uint64_t sj_objc_trampoline_address(sj_objc_trampoline trampoline)
{
    return (uint64_t)(uintptr_t)code_of(sj_objc_trampolines_now) +
           (uint64_t)trampoline * SJ_TRAMPOLINE_BYTES;
}

/* Creates the class of freed objects. Its dispatch table (a sparse array of GCC's libobjc) has
 * capacity 0. So each look-up finds the first word of the empty bucket, which is the freed-message
 * trampoline. */
static void fill_classes(sj_objc_trampolines *trampolines)
{
    for (uint32_t i = 0; i < SJ_DISPATCH_BUCKET; i++) {
        trampolines->bucket[i] = (uint64_t)(uintptr_t)code_of(trampolines);
    }
    trampolines->dispatch[0] = (uint64_t)(uintptr_t)trampolines->dispatch;
    trampolines->dispatch[1] = (uint64_t)(uintptr_t)trampolines->bucket;
    memcpy(trampolines->name, "SojournZombie", sizeof("SojournZombie"));
    trampolines->zombie =
        (sj_gcc_class){.isa = &trampolines->meta,
                       .name = trampolines->name,
                       .info = SJ_GCC_IS_CLASS | SJ_GCC_INITIALIZED | SJ_GCC_RESOLVED,
                       .instance_bytes = sizeof(void *),
                       .dispatch = trampolines->dispatch};
    trampolines->meta = trampolines->zombie;
    trampolines->meta.isa = &trampolines->meta;
    trampolines->meta.info = SJ_GCC_IS_META | SJ_GCC_INITIALIZED | SJ_GCC_RESOLVED;
}

static sj_objc_trampolines *create_trampolines(void)
{
    sj_objc_trampolines *trampolines =
        sj_named_mapping_new(MAPPING_NAME, SJ_TRAMPOLINES_DATA_BYTES, SJ_TRAMPOLINES_CODE_BYTES);
    if (trampolines == NULL) {
        return NULL;
    }
    if (sj_arch_trampolines_write(code_of(trampolines), trampolines->targets) == 0) {
        (void)sj_sys_unmap(trampolines, SJ_TRAMPOLINES_DATA_BYTES + SJ_TRAMPOLINES_CODE_BYTES);
        return NULL;
    }
    if (!sj_named_mapping_seal(trampolines, SJ_TRAMPOLINES_DATA_BYTES, SJ_TRAMPOLINES_CODE_BYTES)) {
        return NULL;
    }
    trampolines->magic = MAPPING_MAGIC;
    fill_classes(trampolines);
    return trampolines;
}

bool sj_objc_trampolines_open(void)
{
    if (sj_objc_trampolines_now == NULL) {
        sj_objc_trampolines *found = sj_named_mapping_find(MAPPING_NAME);
        sj_objc_trampolines_now =
            found != NULL && found->magic == MAPPING_MAGIC ? found : create_trampolines();
    }
    return sj_objc_trampolines_now != NULL;
}

void sj_objc_trampolines_detach(const uint64_t originals[SJ_TRAMPOLINES])
{
    for (uint32_t i = 0; i < SJ_TRAMPOLINES; i++) {
        sj_objc_trampolines_now->targets[i] =
            originals[i] != 0 ? originals[i]
                              : sj_objc_trampoline_address(SJ_TRAMPOLINE_FREED_MESSAGE) +
                                    (uint64_t)SJ_TRAMPOLINES * SJ_TRAMPOLINE_BYTES;
    }
}
