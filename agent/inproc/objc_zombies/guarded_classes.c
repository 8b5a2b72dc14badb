/* Design notes
 *
 * The allocator does not know the class of the object that it allocates. So our replacement of
 * +allocWithZone: asks for a guarded block during the call of the original method. When such an
 * object is deallocated, its memory is freed at once, and its pages are closed. An access to an
 * instance variable then faults and is reported. A message reads the object's class, which faults
 * and is reported, too; the message returns zero. */
#include "agent/inproc/objc_zombies/internal.h"

typedef void *(*allocation)(const sj_gcc_class *class, const void *selector, void *zone);

static uint64_t *originals;
static const sj_gcc_class *root_metaclass;
static sj_gcc_method *alloc_method; /* +allocWithZone: while it is replaced, else NULL. */

static void *wrap_allocate(const sj_gcc_class *class, const void *selector, void *zone)
{
    const allocation original = (allocation)originals[SJ_TRAMPOLINE_GUARD];
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const bool is_guarded = region != NULL && region->settings.objects.is_on != 0 &&
                            region->settings.guard.classes[0] != '\0' &&
                            (sj_class_judge(class, &region->settings) & SJ_CLASS_GUARDED) != 0;
    if (!is_guarded) {
        return original(class, selector, zone);
    }
    sj_guard_next_allocations(true);
    void *object = original(class, selector, zone);
    sj_guard_next_allocations(false);
    return object;
}

void sj_objc_guard_begin(const sj_gcc_class *root, uint64_t *kept_originals)
{
    sj_gcc_method *found =
        sj_objc_gcc.instance_method(root->isa, sj_objc_gcc.register_selector("allocWithZone:"));
    if (alloc_method != NULL || found == NULL) {
        return;
    }
    originals = kept_originals;
    originals[SJ_TRAMPOLINE_GUARD] = sj_objc_gcc.implementation(found);
    sj_objc_trampolines_now->targets[SJ_TRAMPOLINE_GUARD] = (uint64_t)(uintptr_t)&wrap_allocate;
    root_metaclass = root->isa;
    alloc_method = found;
    sj_objc_set_code(root_metaclass, found, sj_objc_trampoline_address(SJ_TRAMPOLINE_GUARD));
}

void sj_objc_guard_end(void)
{
    if (alloc_method != NULL && sj_objc_gcc.implementation(alloc_method) ==
                                    sj_objc_trampoline_address(SJ_TRAMPOLINE_GUARD)) {
        sj_objc_set_code(root_metaclass, alloc_method, originals[SJ_TRAMPOLINE_GUARD]);
    }
    alloc_method = NULL;
}
