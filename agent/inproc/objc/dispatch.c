/* Design notes
 *
 * Hot path: one probe of a table of (class, selector, code). An entry's class is stored last and
 * read first; entries are never removed, because stubs stay.
 * Slow path: the runtime is asked for names before our lock is taken, since a thread that holds the
 * runtime's lock may wait for ours. A handler that interrupts the owner of the lock goes on
 * unrecorded, which is counted.
 * The dispatcher also answers methodForSelector:, whose result is compared and kept: there
 * stubs are translated into the code that they enter, so calls of kept code are not recorded. Code
 * that is not in the class's method list (forwarding makes some for one call) must not be kept: it
 * is called directly. */
#include "agent/inproc/objc/internal.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { SITES_ROOM = 1 << 17, SITES_MAX = SITES_ROOM / 4 * 3 };

typedef struct site_entry {
    const void *_Atomic class; /* NULL: free; written last */
    const void *selector;
    uint64_t target;
    uint64_t code; /* where the message goes on: a stub, or the target if it is not wanted */
} site_entry;

/* struct objc_super of GCC's runtime. */
typedef struct super_call {
    const void *receiver;
    const void *class;
} super_call;

typedef uint64_t (*lookup_function)(const void *receiver, const void *selector);
typedef uint64_t (*super_function)(const super_call *super, const void *selector);
typedef void (*selectors_function)(void *selectors);

static site_entry sites[SITES_ROOM];
static uint32_t site_count;
static sj_owner_lock sites_lock;
static _Atomic uint32_t enabled;
static _Atomic bool is_stopped; /* whoever has sites_lock closes the stubs */
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
    return (uint32_t)(hash >> 40) & (SITES_ROOM - 1);
}

/* The entry of a site, or the free one where it belongs. */
static inline site_entry *find_site(const void *class, const void *selector, uint64_t target)
{
    for (uint32_t place = site_hash(class, selector);; place = (place + 1) & (SITES_ROOM - 1)) {
        site_entry *site = &sites[place];
        /* Pairs with the release store in add_site. */
        const void *held = atomic_load_explicit(&site->class, memory_order_acquire);
        if (held == NULL ||
            (held == class && site->selector == selector && site->target == target)) {
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
    const bool owned = sj_owner_lock_take(&sites_lock);
    const bool is_known = owned && sj_objc_find_method(key) != NULL;
    if (owned) {
        sj_owner_lock_free(&sites_lock);
    }
    return is_known;
}

/* The stub of a message that goes on at `target`, or the target where no record is needed; 0: there
 * is no room. Programs compare what methodForSelector: returns with code that they were given
 * elsewhere, so it must not be a stub, although the method itself only calls the dispatcher. */
static uint64_t make_code(const sj_objc_method *method, uint64_t target)
{
    const bool is_wanted = method->function != 0;
    const sj_dispatch_record *record = NULL;
    if (strcmp(method->selector, "methodForSelector:") == 0) {
        record = sj_objc_stub_make_plain(target);
        if (record == NULL || !is_wanted) {
            return record != NULL ? sj_objc_stub_of(record) : 0;
        }
        target = sj_objc_stub_of(record);
    }
    if (!is_wanted) {
        return target;
    }
    record = sj_objc_stub_make(method, target);
    return record != NULL ? sj_objc_stub_of(record) : 0;
}

/* What is met for the first time: where, and the method that it runs. */
typedef struct new_site {
    sj_objc_method key;
    const void *selector;
    uint64_t target;            /* where the dispatcher goes on */
    uint64_t code;              /* of the method */
    const sj_objc_draft *draft; /* NULL: the method is known */
} new_site;

static site_entry *make_site_locked(const new_site *made)
{
    const sj_objc_method *key = &made->key;
    const void *selector = made->selector;
    const uint64_t target = made->target;
    site_entry *site = find_site(key->class, selector, target);
    if (atomic_load_explicit(&site->class, memory_order_relaxed) != NULL) {
        return site; /* another thread was first */
    }
    if (site_count == SITES_MAX ||
        (made->draft != NULL &&
         !sj_objc_register_method(key, made->code, made->draft, register_method))) {
        return NULL;
    }
    const sj_objc_method *method = sj_objc_find_method(key);
    const uint64_t code = method != NULL ? make_code(method, target) : target;
    if (code == 0) {
        return NULL;
    }
    add_site(site, key->class, selector, target, code);
    return site;
}

/* Makes the site of a message met for the first time; NULL when it is not to be recorded now. */
__attribute__((noinline)) static const site_entry *make_site(const void *class, const void *from,
                                                             const void *selector, uint64_t target,
                                                             bool target_is_code)
{
    new_site made = {.key = {.class = class, .selector = sj_objc_runtime.selector_name(selector)},
                     .selector = selector,
                     .target = target,
                     .code = target_is_code ? target : 0};
    sj_objc_method *key = &made.key;
    key->owner = key->selector == NULL || !sj_recorder_is_armed()
                     ? NULL
                     : sj_objc_find_owner(from, selector, key->selector, &made.code);
    if (key->owner == NULL) {
        return NULL;
    }
    sj_objc_draft *draft = NULL;
    const site_entry *site = NULL;
    const bool is_known = is_method_known(key);
    if (!is_known) {
        draft = sj_sys_allocate(sizeof(*draft));
        if (draft != NULL) {
            sj_objc_describe(key, draft);
            made.draft = draft;
        }
    }
    if ((draft != NULL || is_known) && sj_owner_lock_take(&sites_lock)) {
        site = make_site_locked(&made);
        if (atomic_load(&is_stopped)) {
            sj_objc_stubs_close(); /* sj_objc_stop interrupted this thread */
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

/* Where the caller of a look-up goes on: a stub, or the code itself. */
static inline uint64_t recorded_code(const void *class, const void *from, const void *selector,
                                     uint64_t target)
{
    const site_entry *site = find_site(class, selector, target);
    if (atomic_load_explicit(&site->class, memory_order_acquire) == NULL) {
        site = make_site(class, from, selector, target, true);
    }
    return site != NULL ? site->code : target;
}

static uint64_t lookup(const void *receiver, const void *selector)
{
    const uint64_t target = real_lookup(receiver, selector);
    if (receiver == NULL || atomic_load_explicit(&enabled, memory_order_relaxed) == 0) {
        return target;
    }
    const void *class = *(const void *const *)receiver;
    return recorded_code(class, class, selector, target);
}

static uint64_t lookup_super(const super_call *super, const void *selector)
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
    const site_entry *site = make_site(class, class, selector, target, false);
    return site != NULL ? sj_objc_record_of(site->code) : NULL;
}

/* The runtime calls this, through its own PLT, first of all for each module that registers. */
static void register_selectors(void *selectors)
{
    if (atomic_load_explicit(&enabled, memory_order_relaxed) != 0) {
        sj_objc_follow();
    }
    real_selectors(selectors);
}

enum { REBINDINGS = 5 };

static void list_rebindings(sj_rebinding rebindings[REBINDINGS])
{
    const sj_rebinding list[REBINDINGS] = {
        {"objc_msg_lookup", (uint64_t)(uintptr_t)real_lookup, (uint64_t)(uintptr_t)&lookup},
        {"objc_msg_lookup_super", (uint64_t)(uintptr_t)real_super,
         (uint64_t)(uintptr_t)&lookup_super},
        {"__objc_register_selectors_from_module", (uint64_t)(uintptr_t)real_selectors,
         (uint64_t)(uintptr_t)&register_selectors},
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
    const bool owned = sj_owner_lock_take(&sites_lock);
    const bool is_open = owned && sj_objc_stubs_open();
    if (owned) {
        atomic_store(&is_stopped, false);
        sj_owner_lock_free(&sites_lock);
    }
    return is_open;
}

sj_status sj_objc_start(sj_objc_register registers)
{
    if (!find_runtime()) {
        return SJ_ENOTFOUND;
    }
    if (!open_stubs()) {
        return SJ_ENOMEM;
    }
    register_method = registers;
    /* A module that asks for code while the sender's module is not bound yet would be given a stub:
     * all modules are bound before any lookup returns one. */
    sj_objc_follow();
    atomic_store(&enabled, 1);
    sj_objc_follow(); /* what was loaded meanwhile */
    return SJ_OK;
}

void sj_objc_follow(void)
{
    sj_rebinding rebindings[REBINDINGS];
    list_rebindings(rebindings);
    atomic_fetch_add(&slots, sj_rebind(rebindings, REBINDINGS, false));
}

void sj_objc_stop(void)
{
    sj_rebinding rebindings[REBINDINGS];
    if (atomic_exchange(&enabled, 0) != 0) {
        list_rebindings(rebindings);
        (void)sj_rebind(rebindings, REBINDINGS, true);
        atomic_store(&is_stopped, true);
        if (sj_owner_lock_take(&sites_lock)) { /* a stub that is being made is finished first */
            sj_objc_stubs_close();
            sj_owner_lock_free(&sites_lock);
        }
    }
}

void sj_objc_after_fork(void)
{
    sj_owner_lock_free(&sites_lock);
    if (!sj_recorder_may_call()) {
        atomic_store(&enabled, 0); /* its stubs stay shared: no new ones */
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
