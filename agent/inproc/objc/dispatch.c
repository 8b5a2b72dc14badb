/* Design notes
 *
 * Hot path: one probe of a hash table by class, selector and code (a "site"). A thread that adds an
 * element stores its class last; readers read the class first. Elements are never removed, because
 * stubs stay.
 *
 * Slow path: a thread asks the runtime for names before it takes our lock, because a thread that
 * holds the runtime's lock may wait for ours. If a signal handler interrupts the owner of the lock,
 * its messages are not recorded but counted.
 *
 * Programs compare and store the result of methodForSelector:. So if it is a stub, the dispatcher
 * replaces it by the method's code; calls of a stored address are not recorded. Code that is not in
 * the class's method list, for example code that forwarding creates for one call, gets no stub: it
 * may not exist later. */
#include "agent/inproc/objc/internal.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { SITES_CAPACITY = 1 << 17, SITES_MAX = SITES_CAPACITY / 4 * 3 };

typedef struct site_entry {
    const void *_Atomic class; /* NULL if the element is free. Written last. */
    const void *selector;
    uint64_t target; /* Address that the runtime's dispatcher returned. */
    uint64_t code;   /* A stub, or `target` if the method is not recorded. */
} site_entry;

/* struct objc_super of GCC's runtime. */
typedef struct super_call {
    const void *receiver;
    const void *class;
} super_call;

typedef uint64_t (*lookup_function)(const void *receiver, const void *selector);
typedef uint64_t (*super_function)(const super_call *super, const void *selector);
typedef void (*selectors_function)(void *selectors);

static site_entry sites[SITES_CAPACITY];
static uint32_t site_count;
static sj_owner_lock sites_lock;
static _Atomic uint32_t enabled;
static _Atomic bool is_stopped; /* True if the owner of sites_lock has to close the stubs. */
static _Atomic uint32_t refused;
static _Atomic uint32_t slots;
static sj_objc_register register_method;

uint64_t sj_objc_real_message;
uint64_t sj_objc_real_message_stret;
static lookup_function real_lookup;
static super_function real_super;
static selectors_function real_selectors;

static uint32_t site_hash(const void *class, const void *selector)
{
    const uint64_t hash = ((uint64_t)(uintptr_t) class >> 4) * UINT64_C(0x9e3779b97f4a7c15) ^
                          ((uint64_t)(uintptr_t)selector >> 3) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint32_t)(hash >> 40) & (SITES_CAPACITY - 1);
}

/* Returns the element of a site, or the free element in which to store it. */
static inline site_entry *find_site(const void *class, const void *selector, uint64_t target)
{
    for (uint32_t index = site_hash(class, selector);; index = (index + 1) & (SITES_CAPACITY - 1)) {
        site_entry *site = &sites[index];
        /* Pairs with the release store in add_site. */
        const void *owner = atomic_load_explicit(&site->class, memory_order_acquire);
        if (owner == NULL ||
            (owner == class && site->selector == selector && site->target == target)) {
            return site;
        }
    }
}

static void add_site(site_entry *site, const void *class, const void *selector, uint64_t target,
                     uint64_t code)
{
    site->selector = selector;
    site->target = target;
    site->code = code;
    site_count++;
    atomic_store_explicit(&site->class, class, memory_order_release);
}

static bool is_method_known(const sj_objc_method *key)
{
    const bool owned = sj_owner_lock_acquire(&sites_lock);
    const bool is_known = owned && sj_objc_find_method(key) != NULL;
    if (owned) {
        sj_owner_lock_free(&sites_lock);
    }
    return is_known;
}

/* Returns a stub for a message, or `target` if the method is not recorded. Returns 0 if all stubs
 * are used. methodForSelector: gets a second stub, which replaces a stub in its result by the
 * method's code. */
static uint64_t code_for(const sj_objc_method *method, uint64_t target)
{
    const bool is_wanted = method->function != 0;
    const sj_dispatch_record *record = NULL;
    if (strcmp(method->selector, "methodForSelector:") == 0) {
        record = sj_objc_stub_open_plain(target);
        if (record == NULL || !is_wanted) {
            return record != NULL ? sj_objc_stub_of(record) : 0;
        }
        target = sj_objc_stub_of(record);
    }
    if (!is_wanted) {
        return target;
    }
    record = sj_objc_stub_open(method, target);
    return record != NULL ? sj_objc_stub_of(record) : 0;
}

/* A site that receives its first message, and the method that it runs. */
typedef struct new_site {
    sj_objc_method key;
    const void *selector;
    uint64_t target;            /* Address to which the dispatcher jumps. */
    uint64_t code;              /* Code of the method. */
    const sj_objc_names *draft; /* Names of a new method; NULL if the method is registered. */
} new_site;

/* Adds a site. Returns NULL if a table is full, or if the recorder refuses the method. The caller
 * holds the lock. */
static site_entry *add_new_site_locked(const new_site *new)
{
    const sj_objc_method *key = &new->key;
    const void *selector = new->selector;
    const uint64_t target = new->target;
    site_entry *site = find_site(key->class, selector, target);
    if (atomic_load_explicit(&site->class, memory_order_relaxed) != NULL) {
        return site; /* Another thread has added it before. */
    }
    if (site_count == SITES_MAX ||
        (new->draft != NULL &&
         !sj_objc_register_method(key, new->code, new->draft, register_method))) {
        return NULL;
    }
    const sj_objc_method *method = sj_objc_find_method(key);
    const uint64_t code = method != NULL ? code_for(method, target) : target;
    if (code == 0) {
        return NULL;
    }
    add_site(site, key->class, selector, target, code);
    return site;
}

/* Adds a site. Returns NULL if its messages cannot be recorded now. `class` is the receiver's
 * class; the search for the method begins at `from`. */
__attribute__((noinline)) static const site_entry *add_new_site(const void *class, const void *from,
                                                                const void *selector,
                                                                uint64_t target,
                                                                bool target_is_code)
{
    new_site new = {.key = {.class = class, .selector = sj_objc_runtime.selector_name(selector)},
                    .selector = selector,
                    .target = target,
                    .code = target_is_code ? target : 0};
    sj_objc_method *key = &new.key;
    key->owner = key->selector == NULL || !sj_recorder_is_armed()
                     ? NULL
                     : sj_objc_find_owner(from, selector, key->selector, &new.code);
    if (key->owner == NULL) {
        return NULL;
    }
    sj_objc_names *draft = NULL;
    const site_entry *site = NULL;
    const bool is_known = is_method_known(key);
    if (!is_known) {
        draft = sj_sys_allocate(sizeof(*draft));
        if (draft != NULL) {
            sj_objc_describe(key, draft);
            new.draft = draft;
        }
    }
    if ((draft != NULL || is_known) && sj_owner_lock_acquire(&sites_lock)) {
        site = add_new_site_locked(&new);
        if (atomic_load(&is_stopped)) {
            sj_objc_stubs_close(); /* sj_objc_dispatch_stop did not get the lock. */
        }
        sj_owner_lock_free(&sites_lock);
    }
    if (draft != NULL) {
        (void)sj_sys_unmap(draft, sizeof(*draft));
    }
    if (site == NULL) {
        atomic_fetch_add(&refused, 1);
    }
    return site;
}

/* Returns the code that a message runs: a stub, or the method itself. */
static inline uint64_t recorded_code(const void *class, const void *from, const void *selector,
                                     uint64_t target)
{
    const site_entry *site = find_site(class, selector, target);
    if (atomic_load_explicit(&site->class, memory_order_acquire) == NULL) {
        site = add_new_site(class, from, selector, target, true);
    }
    return site != NULL ? site->code : target;
}

static uint64_t wrap_lookup(const void *receiver, const void *selector)
{
    const uint64_t target = real_lookup(receiver, selector);
    if (receiver == NULL || atomic_load_explicit(&enabled, memory_order_relaxed) == 0) {
        return target;
    }
    const void *class = *(const void *const *)receiver;
    return recorded_code(class, class, selector, target);
}

static uint64_t wrap_lookup_super(const super_call *super, const void *selector)
{
    const uint64_t target = real_super(super, selector);
    if (super->receiver == NULL || atomic_load_explicit(&enabled, memory_order_relaxed) == 0) {
        return target;
    }
    return recorded_code(*(const void *const *)super->receiver, super->class, selector, target);
}

const sj_dispatch_record *sj_objc_message(const void *receiver, const void *selector,
                                          uint64_t target)
{
    if (receiver == NULL || atomic_load_explicit(&enabled, memory_order_relaxed) == 0) {
        return NULL;
    }
    const site_entry *site = find_site(*(const void *const *)receiver, selector, target);
    const bool is_known = atomic_load_explicit(&site->class, memory_order_acquire) != NULL;
    return is_known ? sj_objc_record_of(site->code) : SJ_OBJC_UNKNOWN;
}

const sj_dispatch_record *sj_objc_new_message(const void *receiver, const void *selector,
                                              uint64_t target)
{
    const void *class = *(const void *const *)receiver;
    const site_entry *site = add_new_site(class, class, selector, target, false);
    return site != NULL ? sj_objc_record_of(site->code) : NULL;
}

/* Replaces a function that the runtime calls, by its own PLT, for each module that registers
 * itself. */
static void wrap_register_selectors(void *selectors)
{
    if (atomic_load_explicit(&enabled, memory_order_relaxed) != 0) {
        sj_objc_dispatch_rebind_modules();
    }
    real_selectors(selectors);
}

enum { REBINDINGS = 5 };

static void list_rebindings(sj_rebinding rebindings[REBINDINGS])
{
    const sj_rebinding list[REBINDINGS] = {
        {"objc_msg_lookup", (uint64_t)(uintptr_t)real_lookup, (uint64_t)(uintptr_t)&wrap_lookup},
        {"objc_msg_lookup_super", (uint64_t)(uintptr_t)real_super,
         (uint64_t)(uintptr_t)&wrap_lookup_super},
        {"__objc_register_selectors_from_module", (uint64_t)(uintptr_t)real_selectors,
         (uint64_t)(uintptr_t)&wrap_register_selectors},
        {"objc_msgSend", sj_objc_real_message, (uint64_t)(uintptr_t)&sj_arch_objc_message},
        {"objc_msgSend_stret", sj_objc_real_message_stret,
         (uint64_t)(uintptr_t)&sj_arch_objc_message_stret}};
    for (uint32_t i = 0; i < REBINDINGS; i++) {
        rebindings[i] = list[i];
    }
}

static bool find_runtime(void)
{
    *(uint64_t *)&real_lookup = sj_rebind_find("objc_msg_lookup");
    *(uint64_t *)&real_super = sj_rebind_find("objc_msg_lookup_super");
    *(uint64_t *)&real_selectors = sj_rebind_find("__objc_register_selectors_from_module");
    sj_objc_real_message = sj_rebind_find("objc_msgSend");
    sj_objc_real_message_stret = sj_rebind_find("objc_msgSend_stret");
    if (!sj_arch_objc_can_keep_vectors()) {
        sj_objc_real_message = 0;
        sj_objc_real_message_stret = 0;
    }
    return sj_objc_find_api() && (real_lookup != NULL || sj_objc_real_message != 0);
}

static bool open_stubs(void)
{
    const bool owned = sj_owner_lock_acquire(&sites_lock);
    const bool is_open = owned && sj_objc_stubs_open();
    if (owned) {
        atomic_store(&is_stopped, false);
        sj_owner_lock_free(&sites_lock);
    }
    return is_open;
}

sj_status sj_objc_dispatch_start(sj_objc_register registers)
{
    if (!find_runtime()) {
        return SJ_ENOTFOUND;
    }
    if (!open_stubs()) {
        return SJ_ENOMEM;
    }
    register_method = registers;
    /* First rebind all modules, then enable stubs. Otherwise, for one method, a rebound module
     * could get a stub and another module the method's own address. A program that compares the two
     * addresses would find them different. */
    sj_objc_dispatch_rebind_modules();
    atomic_store(&enabled, 1);
    sj_objc_dispatch_rebind_modules(); /* Rebinds modules that were loaded meanwhile. */
    return SJ_OK;
}

void sj_objc_dispatch_rebind_modules(void)
{
    sj_rebinding rebindings[REBINDINGS];
    list_rebindings(rebindings);
    atomic_fetch_add(&slots, sj_rebind(rebindings, REBINDINGS, false));
}

void sj_objc_dispatch_stop(void)
{
    sj_rebinding rebindings[REBINDINGS];
    if (atomic_exchange(&enabled, 0) != 0) {
        list_rebindings(rebindings);
        (void)sj_rebind(rebindings, REBINDINGS, true);
        atomic_store(&is_stopped, true);
        if (sj_owner_lock_acquire(&sites_lock)) { /* Waits for a thread that creates a stub. */
            sj_objc_stubs_close();
            sj_owner_lock_free(&sites_lock);
        }
    }
}

void sj_objc_dispatch_after_fork(void)
{
    sj_owner_lock_free(&sites_lock);
    if (!sj_recorder_may_call()) {
        /* The child cannot copy its parent's shared stubs, so it must not add any. */
        atomic_store(&enabled, 0);
        return;
    }
    (void)!sj_objc_stubs_after_fork();
}

void sj_objc_get_counters(sj_objc_counters *counters)
{
    *counters = (sj_objc_counters){.methods = sj_objc_method_count(),
                                   .stubs = sj_objc_stub_count(),
                                   .slots = atomic_load(&slots),
                                   .refused = atomic_load(&refused)};
}
