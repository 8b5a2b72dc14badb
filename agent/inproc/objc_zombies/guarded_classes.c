/* Design notes
 *
 * The runtime does not say to the allocator what it allocates for, so +allocWithZone: does, for the
 * one allocation that it makes. Such an object is not kept when it dies: its memory is freed and so
 * closed, and what reads or writes an instance variable of it is found. What sends it a message
 * reads its class, which is found as well, and then gets zero. */
#include "agent/inproc/objc_zombies/internal.h"

typedef void *(*allocation)(const sj_gcc_class *class, const void *selector, void *zone);

static uint64_t *originals;
static const sj_gcc_class *owner;
static sj_gcc_method *method; /* NULL: not replaced */

static void *allocate(const sj_gcc_class *class, const void *selector, void *zone)
{
    const allocation original = (allocation)originals[SJ_DOOR_GUARD];
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const bool is_guarded = region != NULL && region->settings.objects.is_on != 0 &&
                            region->settings.guard.classes[0] != '\0' &&
                            (sj_class_judge(class, &region->settings) & SJ_CLASS_GUARDED) != 0;
    if (!is_guarded) {
        return original(class, selector, zone);
    }
    sj_zombies_guard_next(true);
    void *made = original(class, selector, zone);
    sj_zombies_guard_next(false);
    return made;
}

void sj_objc_guard_begin(const sj_gcc_class *root, uint64_t *kept_originals)
{
    sj_gcc_method *found =
        sj_objc_gcc.instance_method(root->isa, sj_objc_gcc.register_selector("allocWithZone:"));
    if (method != NULL || found == NULL) {
        return;
    }
    originals = kept_originals;
    originals[SJ_DOOR_GUARD] = sj_objc_gcc.implementation(found);
    sj_doors_now->leads_to[SJ_DOOR_GUARD] = (uint64_t)(uintptr_t)&allocate;
    owner = root->isa;
    method = found;
    sj_objc_set_code(owner, found, sj_door(SJ_DOOR_GUARD));
}

void sj_objc_guard_end(void)
{
    if (method != NULL && sj_objc_gcc.implementation(method) == sj_door(SJ_DOOR_GUARD)) {
        sj_objc_set_code(owner, method, originals[SJ_DOOR_GUARD]);
    }
    method = NULL;
}
