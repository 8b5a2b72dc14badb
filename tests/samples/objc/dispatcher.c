#include "dispatcher.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(sample_class, cache) == 16, "the assembly says so");
_Static_assert(sizeof(sample_method) == 16, "the assembly says so");

enum { SELECTORS = 256 };

static char names[SELECTORS][64];
static uint32_t name_count;

sample_selector sel_registerName(const char *name)
{
    for (uint32_t i = 0; i < name_count; i++) {
        if (strcmp(names[i], name) == 0) {
            return names[i];
        }
    }
    strncpy(names[name_count], name, sizeof(names[0]) - 1);
    return names[name_count++];
}

void sample_class_init(sample_class *class, sample_class *meta, sample_class *super,
                       const char *name)
{
    *class = (sample_class){.isa = meta, .super = super, .name = name};
    *meta = (sample_class){.super = super != NULL ? super->isa : class, .name = name};
}

void sample_class_add(sample_class *class, const char *selector, sample_code code)
{
    class->methods[class->method_count++] = (sample_method){sel_registerName(selector), code};
}

const sample_method *class_getInstanceMethod(const sample_class *class, sample_selector selector)
{
    for (; class != NULL; class = class->super) {
        for (uint32_t i = 0; i < class->method_count; i++) {
            if (class->methods[i].selector == selector) {
                return &class->methods[i];
            }
        }
    }
    return NULL;
}

sample_code objc_sample_find(sample_object *receiver, sample_selector selector)
{
    sample_class *class = receiver->isa;
    const sample_method *method = class_getInstanceMethod(class, selector);
    /* a forwarded message is not cached: the forwarding method may decide differently each time */
    if (method == NULL) {
        method = class_getInstanceMethod(class, sel_registerName("forward"));
        return method->code;
    }
    class->cache[((uintptr_t)selector >> 6) % SAMPLE_CACHE] = *method;
    return method->code;
}

const char *class_getName(const sample_class *class)
{
    return class->name;
}

const char *sel_getName(sample_selector selector)
{
    return selector;
}

const sample_class *class_getSuperclass(const sample_class *class)
{
    return class->super;
}

bool class_isMetaClass(const sample_class *class)
{
    return class->isa == NULL;
}

sample_code method_getImplementation(const sample_method *method)
{
    return method->code;
}
