/* Design notes
 *
 * The agent reports a change before the runtime makes it, so that no call by the new name is
 * recorded earlier. The runtime may refuse class_addMethod; so this change is reported after it was
 * made, but before the program continues.
 *
 * A method of the runtime has no pointer to its class, so all classes are searched. This is slow,
 * but swizzling is rare. For code made from a block (imp_implementationWithBlock), the block's own
 * function is reported, which the generated code calls. */
#include "agent/inproc/objc/replaced_methods.h"

#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/objc/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <link.h>
#include <stdatomic.h>
#include <string.h>

enum { REBINDINGS = 6, CLASSES_MAX = 1 << 20 };

typedef uint8_t (*add_function)(void *class, void *selector, uint64_t code, const char *types);
typedef uint64_t (*replace_function)(void *class, void *selector, uint64_t code, const char *types);
typedef uint64_t (*set_function)(void *method, uint64_t code);
typedef void (*exchange_function)(void *first, void *second);
typedef void (*module_function)(void *module);
typedef int (*list_function)(const void **classes, int count);

/* The first members of a block. */
typedef struct block_head {
    const void *class;
    uint64_t flags;
    uint64_t invoke;
} block_head;

static add_function real_add;
static replace_function real_replace;
static set_function real_set;
static exchange_function real_exchange;
static module_function real_selectors; /* Function of GCC's runtime. */
static module_function real_load;      /* Function of libobjc2. */
static list_function list_classes;
static const void *(*method_selector)(const void *method);
static const block_head *(*block_of)(uint64_t code);
static sj_objc_report_replaced report_changes;
static bool (*is_of_interest)(uint64_t code);
static _Atomic bool is_on;
/* Value of dlpi_adds when modules were last rebound: the number of modules ever loaded. */
static _Atomic uint64_t bound_loads;

/* Returns the function of a block if `code` was made from one, else `code`. */
static uint64_t plain_code(uint64_t code)
{
    const block_head *block = block_of != NULL ? block_of(code) : NULL;
    return block != NULL ? block->invoke : code;
}

static bool fill_change(sj_objc_replaced_method *change, const void *class, const void *selector,
                        uint64_t code)
{
    if (class == NULL || selector == NULL || code == 0) {
        return false;
    }
    const sj_objc_method method = {
        .class = class, .owner = class, .selector = sj_objc_runtime.selector_name(selector)};
    if (method.selector == NULL) {
        return false;
    }
    change->code = plain_code(code);
    change->name_bytes = sj_objc_write_name(&method, change->name);
    return true;
}

/* Reports the changes if any of them is of interest. */
static void report_if_of_interest(const sj_objc_replaced_method *changes, uint32_t count)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        is_wanted = is_wanted || is_of_interest(changes[i].code);
    }
    if (is_wanted) {
        report_changes(changes, count);
    }
}

static void report_replacement(const void *class, const void *selector, uint64_t code)
{
    sj_objc_replaced_method change;
    if (atomic_load_explicit(&is_on, memory_order_relaxed) &&
        fill_change(&change, class, selector, code)) {
        report_if_of_interest(&change, 1);
    }
}

static const void *search_classes(const void **classes, int count, const void *method,
                                  const void *selector)
{
    for (int i = 0; i < count; i++) {
        const void *meta = *(const void *const *)classes[i];
        if (sj_objc_owns_method(classes[i], method, selector)) {
            return classes[i];
        }
        if (meta != NULL && sj_objc_owns_method(meta, method, selector)) {
            return meta;
        }
    }
    return NULL;
}

/* Returns the class or metaclass that defines a method, or NULL. */
static const void *find_class(const void *method, const void *selector)
{
    const int count = list_classes(NULL, 0);
    if (count <= 0 || count > CLASSES_MAX) {
        return NULL;
    }
    const size_t bytes = (size_t)count * sizeof(void *);
    const void **classes = sj_sys_allocate(bytes);
    if (classes == NULL) {
        return NULL;
    }
    const int listed = list_classes(classes, count);
    const void *found = search_classes(classes, listed < count ? listed : count, method, selector);
    (void)sj_sys_unmap((void *)classes, bytes);
    return found;
}

static bool fill_change_of_method(sj_objc_replaced_method *change, const void *method,
                                  uint64_t code)
{
    const void *selector = method != NULL ? method_selector(method) : NULL;
    return selector != NULL && fill_change(change, find_class(method, selector), selector, code);
}

static uint8_t wrap_add_method(void *class, void *selector, uint64_t code, const char *types)
{
    const uint8_t is_added = real_add(class, selector, code, types);
    if (is_added != 0) {
        report_replacement(class, selector, code);
    }
    return is_added;
}

static uint64_t wrap_replace_method(void *class, void *selector, uint64_t code, const char *types)
{
    report_replacement(class, selector, code);
    return real_replace(class, selector, code, types);
}

static uint64_t wrap_set_implementation(void *method, uint64_t code)
{
    sj_objc_replaced_method change;
    if (atomic_load_explicit(&is_on, memory_order_relaxed) &&
        fill_change_of_method(&change, method, code)) {
        report_if_of_interest(&change, 1);
    }
    return real_set(method, code);
}

static void report_exchange(const void *first, const void *second)
{
    sj_objc_replaced_method changes[SJ_OBJC_REPLACED_TOGETHER];
    if (first != NULL && second != NULL &&
        fill_change_of_method(&changes[0], first, sj_objc_runtime.implementation(second)) &&
        fill_change_of_method(&changes[1], second, sj_objc_runtime.implementation(first))) {
        report_if_of_interest(changes, SJ_OBJC_REPLACED_TOGETHER);
    }
}

static void wrap_exchange_implementations(void *first, void *second)
{
    if (atomic_load_explicit(&is_on, memory_order_relaxed)) {
        report_exchange(first, second);
    }
    real_exchange(first, second);
}

static void list_rebindings(sj_rebinding rebindings[REBINDINGS]);

static int read_loads(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(uint64_t *)context = info->dlpi_adds;
    return 1;
}

/* Rebinds modules that were loaded since the last call. A library may register hundreds of classes,
 * so this first checks whether any module was loaded. */
static void bind_new_modules(void)
{
    sj_rebinding rebindings[REBINDINGS];
    uint64_t loads = 0;
    (void)sj_module_walk(read_loads, &loads);
    if (atomic_load_explicit(&is_on, memory_order_relaxed) &&
        atomic_exchange(&bound_loads, loads) != loads) {
        list_rebindings(rebindings);
        (void)sj_rebind(rebindings, REBINDINGS, false);
    }
}

/* Binds new modules, then calls the runtime's own function. GCC's runtime calls it for each module
 * that registers, before code of its classes runs. */
static void wrap_register_selectors(void *selectors)
{
    bind_new_modules();
    real_selectors(selectors);
}

/* Binds new modules, then calls the runtime's own function. libobjc2 calls it for each module that
 * registers, before code of its classes runs. */
static void wrap_load_module(void *module)
{
    bind_new_modules();
    real_load(module);
}

static void list_rebindings(sj_rebinding rebindings[REBINDINGS])
{
    const sj_rebinding list[REBINDINGS] = {
        {"class_addMethod", (uint64_t)(uintptr_t)real_add, (uint64_t)(uintptr_t)&wrap_add_method},
        {"class_replaceMethod", (uint64_t)(uintptr_t)real_replace,
         (uint64_t)(uintptr_t)&wrap_replace_method},
        {"method_setImplementation", (uint64_t)(uintptr_t)real_set,
         (uint64_t)(uintptr_t)&wrap_set_implementation},
        {"method_exchangeImplementations", (uint64_t)(uintptr_t)real_exchange,
         (uint64_t)(uintptr_t)&wrap_exchange_implementations},
        {"__objc_register_selectors_from_module", (uint64_t)(uintptr_t)real_selectors,
         (uint64_t)(uintptr_t)&wrap_register_selectors},
        {"__objc_load", (uint64_t)(uintptr_t)real_load, (uint64_t)(uintptr_t)&wrap_load_module}};
    memcpy(rebindings, list, sizeof(list));
}

static bool find_runtime(void)
{
    *(uint64_t *)&real_add = sj_rebind_find("class_addMethod");
    if (real_add == NULL) {
        return false;
    }
    *(uint64_t *)&real_replace = sj_rebind_find("class_replaceMethod");
    *(uint64_t *)&real_set = sj_rebind_find("method_setImplementation");
    *(uint64_t *)&real_exchange = sj_rebind_find("method_exchangeImplementations");
    *(uint64_t *)&real_selectors = sj_rebind_find("__objc_register_selectors_from_module");
    *(uint64_t *)&real_load = sj_rebind_find("__objc_load");
    *(uint64_t *)&list_classes = sj_rebind_find("objc_getClassList");
    *(uint64_t *)&method_selector = sj_rebind_find("method_getName");
    *(uint64_t *)&block_of = sj_rebind_find("imp_getBlock");
    return sj_objc_find_api() && real_replace != NULL && real_set != NULL &&
           real_exchange != NULL && list_classes != NULL && method_selector != NULL;
}

sj_status sj_objc_replaced_start(sj_objc_report_replaced report, bool (*interest)(uint64_t code))
{
    if (!find_runtime()) {
        return SJ_ENOTFOUND;
    }
    report_changes = report;
    is_of_interest = interest;
    atomic_store(&bound_loads, 0);
    atomic_store(&is_on, true);
    bind_new_modules();
    return SJ_OK;
}

void sj_objc_replaced_stop(void)
{
    sj_rebinding rebindings[REBINDINGS];
    if (atomic_exchange(&is_on, false)) {
        list_rebindings(rebindings);
        (void)sj_rebind(rebindings, REBINDINGS, true);
    }
}
