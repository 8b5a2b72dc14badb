#include "agent/inproc/objc/internal.h"

#include "agent/inproc/hooks/rebind.h"

#include <string.h>

enum {
    METHODS_CAPACITY = 1 << 17,
    METHODS_MAX = METHODS_CAPACITY / 4 * 3,
    CLASS_NAME_MAX_BYTES = 1023
};

/* CLASS_METHODS: index of the word in a class of GCC's runtime that points to its method lists. */
enum { CLASS_METHODS = 7, LISTS_MAX = 64 };

typedef struct gcc_method {
    const void *selector;
    const char *types;
    uint64_t implementation;
} gcc_method;

typedef struct gcc_method_list {
    const struct gcc_method_list *next;
    int32_t count;
    gcc_method methods[];
} gcc_method_list;

sj_objc_api sj_objc_runtime;

bool sj_objc_find_api(void)
{
    sj_objc_api *api = &sj_objc_runtime;
    *(uint64_t *)&api->class_name = sj_rebind_find("class_getName");
    *(uint64_t *)&api->selector_name = sj_rebind_find("sel_getName");
    *(uint64_t *)&api->superclass = sj_rebind_find("class_getSuperclass");
    *(uint64_t *)&api->is_meta = sj_rebind_find("class_isMetaClass");
    *(uint64_t *)&api->instance_method = sj_rebind_find("class_getInstanceMethod");
    *(uint64_t *)&api->implementation = sj_rebind_find("method_getImplementation");
    /* Only GCC's runtime has this function. */
    api->has_method_lists = sj_rebind_find("__objc_register_selectors_from_module") != 0;
    return api->class_name != NULL && api->selector_name != NULL && api->superclass != NULL &&
           api->is_meta != NULL && api->instance_method != NULL && api->implementation != NULL;
}

static sj_objc_method known[METHODS_CAPACITY];
static uint32_t known_count;

static uint32_t method_hash(const sj_objc_method *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key->class >> 4;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)(uintptr_t)key->selector >> 1);
    hash = hash * UINT64_C(0xd6e8feb86659fd93) + ((uint64_t)(uintptr_t)key->owner >> 4);
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 40) & (METHODS_CAPACITY - 1);
}

static bool is_same(const sj_objc_method *a, const sj_objc_method *b)
{
    return a->class == b->class && a->owner == b->owner && a->selector == b->selector;
}

/* Returns the element of a key, or the free element in which to store it. */
static sj_objc_method *find_method_entry(const sj_objc_method *key)
{
    uint32_t index = method_hash(key);
    while (known[index].class != NULL && !is_same(&known[index], key)) {
        index = (index + 1) & (METHODS_CAPACITY - 1);
    }
    return &known[index];
}

const sj_objc_method *sj_objc_find_method(const sj_objc_method *key)
{
    const sj_objc_method *found = find_method_entry(key);
    return found->class != NULL ? found : NULL;
}

static void append_text(char *name, uint32_t *used, const char *text)
{
    while (*text != '\0' && *used < SJ_OBJC_NAME_BYTES - 2) {
        name[(*used)++] = *text++;
    }
}

/* Returns the first method list of a class. The runtime adds lists only at the front, so no lock is
 * needed. */
static const gcc_method_list *lists_of(const void *class)
{
    return ((const gcc_method_list *const *)class)[CLASS_METHODS];
}

static const gcc_method *find_in_lists(const void *class, const char *name)
{
    const gcc_method_list *list = lists_of(class);
    for (uint32_t lists = 0; list != NULL && lists < LISTS_MAX; lists++, list = list->next) {
        for (int32_t i = 0; i < list->count; i++) {
            if (sj_objc_runtime.selector_name(list->methods[i].selector) == name) {
                return &list->methods[i];
            }
        }
    }
    return NULL;
}

static bool is_in_lists(const void *class, const void *method)
{
    const gcc_method_list *list = lists_of(class);
    for (uint32_t lists = 0; list != NULL && lists < LISTS_MAX; lists++, list = list->next) {
        if ((const gcc_method *)method >= list->methods &&
            (const gcc_method *)method < list->methods + list->count) {
            return true;
        }
    }
    return false;
}

bool sj_objc_owns_method(const void *class, const void *method, const void *selector)
{
    if (sj_objc_runtime.has_method_lists) {
        return is_in_lists(class, method);
    }
    const void *super = sj_objc_runtime.superclass(class);
    return sj_objc_runtime.instance_method(class, selector) == method &&
           (super == NULL || sj_objc_runtime.instance_method(super, selector) != method);
}

/* True if `*code` is 0 or equals the method's implementation. If it is 0, sets it to the
 * implementation. */
static bool is_expected_code(uint64_t implementation, uint64_t *code)
{
    if (*code == 0) {
        *code = implementation;
    }
    return *code == implementation;
}

static const void *find_owner_in_lists(const void *from, const char *name, uint64_t *code)
{
    for (const void *at = from; at != NULL; at = sj_objc_runtime.superclass(at)) {
        const gcc_method *method = find_in_lists(at, name);
        if (method != NULL) {
            return is_expected_code(method->implementation, code) ? at : NULL;
        }
    }
    return NULL;
}

const void *sj_objc_find_owner(const void *from, const void *selector, const char *name,
                               uint64_t *code)
{
    if (sj_objc_runtime.has_method_lists) {
        return find_owner_in_lists(from, name, code);
    }
    const void *method = sj_objc_runtime.instance_method(from, selector);
    if (method == NULL || !is_expected_code(sj_objc_runtime.implementation(method), code)) {
        return NULL;
    }
    const void *owner = from;
    for (const void *at = from; at != NULL; at = sj_objc_runtime.superclass(at)) {
        if (sj_objc_runtime.instance_method(at, selector) != method) {
            break;
        }
        owner = at;
    }
    return owner;
}

/* Writes the names of a class, its superclass and so on, as many as fit. Truncates only the name of
 * the class itself. */
static void describe_lineage(const void *class, sj_objc_names *draft)
{
    draft->lineage_bytes = 0;
    for (; class != NULL; class = sj_objc_runtime.superclass(class)) {
        const char *name = sj_objc_runtime.class_name(class);
        const uint32_t used = draft->lineage_bytes;
        const size_t bytes = strnlen(name, CLASS_NAME_MAX_BYTES);
        if (used != 0 && (name[bytes] != '\0' || bytes >= SJ_OBJC_LINEAGE_BYTES - used)) {
            return;
        }
        memcpy(draft->lineage + used, name, bytes);
        draft->lineage[used + bytes] = '\0';
        draft->lineage_bytes += (uint32_t)bytes + 1;
    }
}

uint32_t sj_objc_write_name(const sj_objc_method *method, char *name)
{
    uint32_t used = 0;
    append_text(name, &used, sj_objc_runtime.is_meta(method->class) ? "+[" : "-[");
    append_text(name, &used, sj_objc_runtime.class_name(method->class));
    if (method->owner != method->class) {
        append_text(name, &used, ":");
        append_text(name, &used, sj_objc_runtime.class_name(method->owner));
    }
    append_text(name, &used, " ");
    append_text(name, &used, method->selector);
    name[used++] = ']';
    name[used++] = '\0';
    return used;
}

void sj_objc_describe(const sj_objc_method *method, sj_objc_names *draft)
{
    draft->name_bytes = sj_objc_write_name(method, draft->name);
    describe_lineage(method->class, draft);
}

bool sj_objc_register_method(const sj_objc_method *method, uint64_t code,
                             const sj_objc_names *draft, sj_objc_register registers)
{
    const sj_objc_report report = {.name = draft->name,
                                   .name_bytes = draft->name_bytes,
                                   .lineage = draft->lineage,
                                   .lineage_bytes = draft->lineage_bytes,
                                   .code = code};
    sj_objc_method *element = find_method_entry(method);
    uint32_t function = 0;
    if (element->class != NULL) {
        return true;
    }
    if (known_count == METHODS_MAX || !registers(&report, &function)) {
        return false;
    }
    *element = *method;
    element->function = function;
    known_count++;
    return true;
}

uint32_t sj_objc_method_count(void)
{
    return known_count;
}
