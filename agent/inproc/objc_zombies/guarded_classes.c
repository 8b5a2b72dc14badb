/* Design notes
 *
 * The runtime does not tell the allocator which class it allocates for. So +allocWithZone: asks for
 * a guarded block for the one allocation that it makes. Such an object is not kept when it dies.
 * Its memory is freed and so closed: an access to its instance variables is a fault, which is
 * reported. A message reads its class, which is also a fault, and then returns zero. */
#include "agent/inproc/objc_zombies/internal.h"

typedef void *(*allocation)(const sj_gcc_class *class, const void *selector, void *zone);

static uint64_t *originals;
static const sj_gcc_class *owner;
static sj_gcc_method *method; /* NULL: not replaced. */

static void *allocate(const sj_gcc_class *class, const void *selector, void *zone)
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
    if (method != NULL || found == NULL) {
        return;
    }
    originals = kept_originals;
    originals[SJ_TRAMPOLINE_GUARD] = sj_objc_gcc.implementation(found);
    sj_objc_trampolines_now->targets[SJ_TRAMPOLINE_GUARD] = (uint64_t)(uintptr_t)&allocate;
    owner = root->isa;
    method = found;
    sj_objc_set_code(owner, found, sj_objc_trampoline_address(SJ_TRAMPOLINE_GUARD));
}

void sj_objc_guard_end(void)
{
    if (method != NULL &&
        sj_objc_gcc.implementation(method) == sj_objc_trampoline_address(SJ_TRAMPOLINE_GUARD)) {
        sj_objc_set_code(owner, method, originals[SJ_TRAMPOLINE_GUARD]);
    }
    method = NULL;
}
