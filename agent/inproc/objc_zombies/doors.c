/* Design notes
 *
 * A program keeps code that it has asked for: addresses of methods are cached by collections, pools
 * and programs themselves, and a freed object's class may be read by a message that is being
 * looked up while we leave. So what the program can get hold of lies in memory that stays, one
 * mapping, which the next agent finds by its name and uses again. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/named_mapping.h"

#include <string.h>

#define DOORS_NAME "sojourn-objects"
#define DOORS_MAGIC UINT64_C(0x32524f4f444a5353) /* "SSJDOOR2" */

sj_doors *sj_doors_now;

_Static_assert(sizeof(sj_doors) <= SJ_DOORS_DATA_BYTES, "the doors' data fits its page");

static uint8_t *code_of(sj_doors *doors)
{
    return (uint8_t *)doors + SJ_DOORS_DATA_BYTES;
}

uint64_t sj_door(sj_objc_door door)
{
    return (uint64_t)(uintptr_t)code_of(sj_doors_now) + (uint64_t)door * SJ_DOOR_BYTES;
}

/* A sparse array whose capacity is 0: all that is looked up in it is the first word of its empty
 * bucket (objc/sarray.h). */
static void make_classes(sj_doors *doors)
{
    for (uint32_t i = 0; i < SJ_DISPATCH_BUCKET; i++) {
        doors->bucket[i] = (uint64_t)(uintptr_t)code_of(doors);
    }
    doors->dispatch[0] = (uint64_t)(uintptr_t)doors->dispatch;
    doors->dispatch[1] = (uint64_t)(uintptr_t)doors->bucket;
    memcpy(doors->name, "SojournZombie", sizeof("SojournZombie"));
    doors->zombie = (sj_gcc_class){.isa = &doors->meta,
                                   .name = doors->name,
                                   .info = SJ_GCC_IS_CLASS | SJ_GCC_INITIALIZED | SJ_GCC_RESOLVED,
                                   .instance_bytes = sizeof(void *),
                                   .dispatch = doors->dispatch};
    doors->meta = doors->zombie;
    doors->meta.isa = &doors->meta;
    doors->meta.info = SJ_GCC_IS_META | SJ_GCC_INITIALIZED | SJ_GCC_RESOLVED;
}

static sj_doors *make_doors(void)
{
    sj_doors *doors = sj_named_mapping_make(DOORS_NAME, SJ_DOORS_DATA_BYTES, SJ_DOORS_CODE_BYTES);
    if (doors == NULL || sj_arch_doors_write(code_of(doors), doors->leads_to) == 0 ||
        !sj_named_mapping_seal(doors, SJ_DOORS_DATA_BYTES, SJ_DOORS_CODE_BYTES)) {
        return NULL;
    }
    doors->magic = DOORS_MAGIC;
    make_classes(doors);
    return doors;
}

bool sj_doors_open(void)
{
    if (sj_doors_now == NULL) {
        sj_doors *found = sj_named_mapping_find(DOORS_NAME);
        sj_doors_now = found != NULL && found->magic == DOORS_MAGIC ? found : make_doors();
    }
    return sj_doors_now != NULL;
}

void sj_doors_close(const uint64_t originals[SJ_DOORS])
{
    for (uint32_t i = 0; i < SJ_DOORS; i++) {
        sj_doors_now->leads_to[i] =
            originals[i] != 0 ? originals[i]
                              : sj_door(SJ_DOOR_ANSWER) + (uint64_t)SJ_DOORS * SJ_DOOR_BYTES;
    }
}
