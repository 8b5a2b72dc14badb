/* Design notes
 *
 * Our code replaces -dealloc of Foundation's root classes in the runtime's tables, so that it also
 * gets calls by `super` and by cached look-ups. It deallocates an object in two steps. At once, it
 * destroys C++ instance variables by -[NSObject finalize]. Later, when the object is freed, it sets
 * the object's class to the root class and calls the original -dealloc. That frees the memory; it
 * destroys nothing again, because the object's class is the root class now. Objects of other root
 * classes are deallocated by object_dispose, which only frees memory. */
#include "agent/inproc/objc_zombies/internal.h"
#include "agent/inproc/objc_zombies/objc_zombies.h"

#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/hooks/rebind.h"

#include <string.h>

enum { ROOTS = 2, REBINDINGS = 3, ATTEMPTS = 8 };

typedef void (*message)(void *object, const void *selector);

typedef struct root_class {
    const char *name;
    sj_objc_trampoline trampoline;
    message replacement;
    const sj_gcc_class *class;
    sj_gcc_method *method; /* Its -dealloc while it is replaced, else NULL. */
} root_class;

static void dealloc_object(void *object, const void *selector);
static void dealloc_proxy(void *object, const void *selector);

static root_class roots[ROOTS] = {
    {.name = "NSObject", .trampoline = SJ_TRAMPOLINE_NSOBJECT, .replacement = dealloc_object},
    {.name = "NSProxy", .trampoline = SJ_TRAMPOLINE_NSPROXY, .replacement = dealloc_proxy}};

static uint64_t originals[SJ_TRAMPOLINES];
static const void *dealloc_selector;
static const void *finalize_selector;
static message finalize;
static const char *_Atomic program_zombies; /* &NSZombieEnabled, or NULL without Foundation. */
static _Atomic bool is_on;
static bool enters_own_methods;
static void (*real_exec_class)(void *module);
static void (*real_deallocate)(void *object);
static void *(*real_dispose)(void *object);

/* Frees the memory of a kept object by the program's own code. */
static void free_object(void *object, const sj_gcc_class *class, sj_objc_source source)
{
    if (source == SJ_OBJC_DISPOSE) {
        *(const sj_gcc_class **)object = class;
        (void)real_dispose(object);
        return;
    }
    const root_class *root = &roots[source == SJ_OBJC_NSPROXY ? 1 : 0];
    ((uint64_t *)object)[-1] = 0;
    *(const sj_gcc_class **)object = root->class;
    ((message)originals[root->trampoline])(object, dealloc_selector);
}

static void refuse_objects(sj_zombie_region *region, sj_zombie_refusal reason)
{
    atomic_store(&region->objects_refusal, reason);
    atomic_store(&is_on, false);
}

/* Keeps an object that is being deallocated. Returns false if the program's own code has to free it
 * at once. */
static bool keep_deallocated(void *object, sj_objc_source source)
{
    sj_zombie_region *region = atomic_load_explicit(&sj_zombie_region_now, memory_order_acquire);
    const sj_gcc_class *class = *(const sj_gcc_class *const *)object;
    /* The program has called -dealloc of a freed object, by an address that it had looked up
     * before. */
    if (class == &sj_objc_trampolines_now->zombie) {
        return sj_objc_handle_freed_message(object, (void *)(uintptr_t)dealloc_selector, NULL,
                                            (uint64_t)(uintptr_t)__builtin_return_address(0))
                   .value == 0;
    }
    if (region == NULL || region->settings.objects.is_on == 0 ||
        !atomic_load_explicit(&is_on, memory_order_relaxed)) {
        return false;
    }
    const uint32_t judged = sj_class_judge(class, &region->settings);
    if ((judged & SJ_CLASS_GUARDED) != 0 &&
        sj_guard_name_object(object, class->name, &sj_objc_trampolines_now->zombie)) {
        return false; /* Its pages are closed when it is freed. */
    }
    if ((judged & SJ_CLASS_WATCHED) == 0) {
        return false;
    }
    if (program_zombies != NULL && *(const volatile char *)program_zombies != 0) {
        refuse_objects(region, SJ_ZOMBIE_OWN_ZOMBIES);
        return false;
    }
    if (source != SJ_OBJC_DISPOSE && (judged & SJ_CLASS_HAS_DESTRUCTOR) != 0) {
        finalize(object, finalize_selector);
    }
    if (!sj_queue_keep(object, class, source)) {
        sj_objects_count(not_kept, 1);
        free_object(object, class, source);
    }
    return true;
}

static void dealloc_object(void *object, const void *selector)
{
    if (!keep_deallocated(object, SJ_OBJC_NSOBJECT)) {
        ((message)originals[SJ_TRAMPOLINE_NSOBJECT])(object, selector);
    }
}

static void dealloc_proxy(void *object, const void *selector)
{
    if (!keep_deallocated(object, SJ_OBJC_NSPROXY)) {
        ((message)originals[SJ_TRAMPOLINE_NSPROXY])(object, selector);
    }
}

static bool is_instance(const void *object)
{
    return object != NULL && *(const void *const *)object != NULL &&
           ((*(const sj_gcc_class *const *)object)->info & SJ_GCC_IS_CLASS) != 0;
}

static void wrap_deallocate(void *object)
{
    if (roots[0].method == NULL || !is_instance(object) ||
        !keep_deallocated(object, SJ_OBJC_DEALLOCATE)) {
        real_deallocate(object);
    }
}

static void *wrap_dispose(void *object)
{
    if (!is_instance(object) || !keep_deallocated(object, SJ_OBJC_DISPOSE)) {
        return real_dispose(object);
    }
    return NULL;
}

static void replace_root(root_class *root)
{
    const sj_gcc_class *class = sj_objc_gcc.look_up_class(root->name);
    sj_gcc_method *method =
        class != NULL ? sj_objc_gcc.instance_method(class, dealloc_selector) : NULL;
    if (method == NULL) {
        return;
    }
    root->class = class;
    originals[root->trampoline] = sj_objc_gcc.implementation(method);
    sj_objc_trampolines_now->targets[root->trampoline] = (uint64_t)(uintptr_t)root->replacement;
    root->method = method;
    sj_objc_set_code(class, method, sj_objc_trampoline_address(root->trampoline));
}

/* Starts the history of objects if the policy asks for it, which a later policy may do. */
static void start_history(void)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL && region->settings.objects.history != 0 && roots[0].class != NULL &&
        sj_history_open(originals, sj_rebind_find("NSExtraRefCount"))) {
        sj_history_begin(roots[0].class);
    }
}

static void start_guard(void)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region != NULL && region->settings.guard.classes[0] != '\0' && roots[0].class != NULL) {
        sj_objc_guard_begin(roots[0].class, originals);
    }
}

/* Replaces -dealloc of the root classes if the modules that define them are registered. The runtime
 * cannot register selectors before it has a class. */
static void replace_roots(void)
{
    if (sj_objc_gcc.look_up_class(roots[0].name) == NULL) {
        return;
    }
    if (dealloc_selector == NULL) {
        dealloc_selector = sj_objc_gcc.register_selector("dealloc");
        finalize_selector = sj_objc_gcc.register_selector("finalize");
        sj_class_destroy_selector = sj_objc_gcc.register_selector(".cxx_destruct");
    }
    if (finalize == NULL) {
        /* Reads the code from the method. Asking the class would send +initialize while modules are
         * being loaded. */
        const uint64_t found = sj_objc_gcc.implementation(sj_objc_gcc.instance_method(
            sj_objc_gcc.look_up_class(roots[0].name), finalize_selector));
        memcpy(&finalize, &found, sizeof(finalize));
    }
    for (uint32_t i = 0; i < ROOTS && atomic_load(&is_on); i++) {
        if (roots[i].method == NULL) {
            replace_root(&roots[i]);
        }
    }
    start_history();
    start_guard();
}

/* Replaces __objc_exec_class, which each module calls to register its classes. */
static void wrap_exec_class(void *module)
{
    real_exec_class(module);
    if (!atomic_load(&is_on)) {
        return;
    }
    if (roots[0].method == NULL || roots[1].method == NULL) {
        replace_roots();
    }
    if (enters_own_methods) {
        sj_own_methods_add_module(module);
    }
}

static void list_rebindings(sj_rebinding rebindings[REBINDINGS])
{
    const sj_rebinding list[REBINDINGS] = {
        {"__objc_exec_class", (uint64_t)(uintptr_t)real_exec_class,
         (uint64_t)(uintptr_t)&wrap_exec_class},
        {"NSDeallocateObject", (uint64_t)(uintptr_t)real_deallocate,
         (uint64_t)(uintptr_t)&wrap_deallocate},
        {"object_dispose", (uint64_t)(uintptr_t)real_dispose, (uint64_t)(uintptr_t)&wrap_dispose}};
    memcpy(rebindings, list, sizeof(list));
}

static void rebind(bool restore)
{
    sj_rebinding rebindings[REBINDINGS];
    list_rebindings(rebindings);
    (void)sj_rebind(rebindings, REBINDINGS, restore);
}

static void find_functions(void)
{
    *(uint64_t *)&real_exec_class = sj_rebind_find("__objc_exec_class");
    *(uint64_t *)&real_deallocate = sj_rebind_find("NSDeallocateObject");
    *(uint64_t *)&real_dispose = sj_rebind_find("object_dispose");
    program_zombies = dlsym(RTLD_DEFAULT, "NSZombieEnabled");
}

/* True if this runtime finds our trampoline as the method of a freed object, for any selector. */
static bool finds_every_selector(void)
{
    const uint64_t selector[2] = {UINT64_C(5) << 32 | 7, 0};
    const sj_gcc_class *object = &sj_objc_trampolines_now->zombie;
    return sj_objc_gcc.look_up(&object, selector) ==
               sj_objc_trampoline_address(SJ_TRAMPOLINE_FREED_MESSAGE) &&
           sj_objc_gcc.class_implementation(object, selector) ==
               sj_objc_trampoline_address(SJ_TRAMPOLINE_FREED_MESSAGE) &&
           sj_objc_gcc.class_name(object) == sj_objc_trampolines_now->name;
}

static sj_zombie_refusal prepare(const sj_zombie_objects *settings)
{
    if (!sj_objc_trampolines_open() || !sj_queue_open(settings, free_object)) {
        return SJ_ZOMBIE_NO_MEMORY;
    }
    sj_objc_trampolines_now->targets[SJ_TRAMPOLINE_FREED_MESSAGE] =
        (uint64_t)(uintptr_t)sj_arch_freed_message;
    return finds_every_selector() ? SJ_ZOMBIE_MONITORED : SJ_ZOMBIE_OTHER_RUNTIME;
}

bool sj_objc_zombies_start(bool enters_methods)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region == NULL || region->settings.objects.is_on == 0) {
        return false;
    }
    if (!sj_objc_zombies_find_runtime()) {
        if (sj_rebind_find("__objc_load") != 0) { /* Only libobjc2 has this function. */
            refuse_objects(region, SJ_ZOMBIE_OTHER_RUNTIME);
        }
        return false;
    }
    if (!atomic_load(&is_on)) {
        const sj_zombie_refusal refusal = prepare(&region->settings.objects);
        atomic_store(&region->objects_refusal, refusal);
        if (refusal != SJ_ZOMBIE_MONITORED) {
            return false;
        }
        find_functions();
        atomic_store(&is_on, true);
    }
    rebind(false);
    replace_roots();
    enters_own_methods = enters_methods;
    if (enters_methods) {
        sj_own_methods_begin();
    }
    return true;
}

void sj_objc_zombies_rebind_modules(void)
{
    if (atomic_load(&is_on)) {
        rebind(false);
    }
}

void sj_objc_zombies_stop(void)
{
    if (sj_objc_trampolines_now == NULL || real_exec_class == NULL) {
        return;
    }
    atomic_store(&is_on, false);
    rebind(true);
    for (uint32_t i = 0; i < ROOTS; i++) {
        root_class *root = &roots[i];
        if (root->method != NULL && sj_objc_gcc.implementation(root->method) ==
                                        sj_objc_trampoline_address(root->trampoline)) {
            sj_objc_set_code(root->class, root->method, originals[root->trampoline]);
        }
        root->method = NULL;
    }
    sj_objc_guard_end();
    sj_history_end();
    sj_own_methods_end();
    sj_objc_trampolines_now->targets[SJ_TRAMPOLINE_NSOBJECT] = originals[SJ_TRAMPOLINE_NSOBJECT];
    sj_objc_trampolines_now->targets[SJ_TRAMPOLINE_NSPROXY] = originals[SJ_TRAMPOLINE_NSPROXY];
    for (uint32_t i = 0; i < ATTEMPTS; i++) { /* Meanwhile, a thread may still keep an object. */
        sj_queue_empty(SJ_OBJECT_RELEASE_DETACH, false);
    }
    sj_objc_trampolines_detach(originals);
}

void sj_objc_zombies_shrink(void)
{
    if (atomic_load(&is_on)) {
        sj_queue_empty(SJ_OBJECT_RELEASE_PRESSURE, true);
    }
}

void sj_objc_zombies_after_fork(void)
{
    sj_queue_after_fork();
    sj_own_methods_after_fork();
}
