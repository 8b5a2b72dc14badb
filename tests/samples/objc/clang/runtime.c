#include "runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INFO_META = 1, INFO_RESOLVED = 1 << 9, INFO_USER_CREATED = 1 << 10, OBJECT_BYTES = 256 };

typedef struct sample_selector {
    const char *name;
    const char *types;
} sample_selector;

typedef struct sample_method {
    void *code;
    sample_selector *selector;
    const char *types;
} sample_method;

typedef struct sample_list {
    struct sample_list *next;
    int32_t count;
    uint64_t method_bytes;
    sample_method methods[];
} sample_list;

typedef struct sample_class {
    struct sample_class *isa;
    struct sample_class *super;
    const char *name;
    uint64_t version;
    uint64_t info;
    int64_t instance_bytes;
    void *ivars;
    sample_list *methods;
    void *rest[9];
} sample_class;

typedef struct sample_category {
    const char *name;
    const char *class_name;
    sample_list *methods;
    sample_list *class_methods;
    void *rest[3];
} sample_category;

typedef struct sample_super {
    void *receiver;
    sample_class *class;
} sample_super;

/* The bounds of a module's sections. The module's constructor passes them. */
typedef struct sample_module {
    uint64_t version;
    sample_selector *selectors[2];
    sample_class **classes[2];
    sample_class **references[2];
    sample_category *categories[2];
} sample_module;

enum { CLASSES_MAX = 64 };

static sample_class *classes[CLASSES_MAX];
static uint32_t class_count;

void __objc_load(sample_module *module);
const char *class_getName(const sample_class *class);
const char *sel_getName(const sample_selector *selector);
sample_class *class_getSuperclass(const sample_class *class);
int class_isMetaClass(const sample_class *class);
sample_method *class_getInstanceMethod(const sample_class *class, const sample_selector *selector);
void *method_getImplementation(const sample_method *method);
void *objc_msg_lookup_super(sample_super *super, sample_selector *selector);
void *sample_find(void *receiver, sample_selector *selector);

static void add_list(sample_class *class, sample_list *list)
{
    if (list != NULL) {
        list->next = class->methods;
        class->methods = list;
    }
}

static void add_class(sample_class *class)
{
    class->isa->isa = class->super != NULL ? class->super->isa->isa : class->isa;
    class->isa->super = class->super != NULL ? class->super->isa : class;
    class->info |= INFO_RESOLVED;
    class->isa->info |= INFO_META | INFO_RESOLVED;
    classes[class_count++] = class;
}

void __objc_load(sample_module *module)
{
    for (sample_class **at = module->classes[0]; at < module->classes[1]; at++) {
        if (*at != NULL) {
            add_class(*at);
        }
    }
    for (sample_category *at = module->categories[0]; at < module->categories[1]; at++) {
        for (uint32_t i = 0; at->class_name != NULL && i < class_count; i++) {
            if (strcmp(classes[i]->name, at->class_name) == 0) {
                add_list(classes[i], at->methods);
                add_list(classes[i]->isa, at->class_methods);
            }
        }
    }
}

sample_method *class_getInstanceMethod(const sample_class *class, const sample_selector *selector)
{
    for (; class != NULL; class = class->super) {
        for (sample_list *list = class->methods; list != NULL; list = list->next) {
            for (int32_t i = 0; i < list->count; i++) {
                if (strcmp(list->methods[i].selector->name, selector->name) == 0) {
                    return &list->methods[i];
                }
            }
        }
    }
    return NULL;
}

void *sample_find(void *receiver, sample_selector *selector)
{
    return class_getInstanceMethod(*(sample_class **)receiver, selector)->code;
}

void *objc_msg_lookup_super(sample_super *super, sample_selector *selector)
{
    return class_getInstanceMethod(super->class, selector)->code;
}

const char *class_getName(const sample_class *class)
{
    return class->name;
}

/* Returns the same pointer for all selectors of the same name, as a runtime does. */
const char *sel_getName(const sample_selector *selector)
{
    static const char *names[CLASSES_MAX];
    uint32_t i = 0;
    while (names[i] != NULL && strcmp(names[i], selector->name) != 0) {
        i++;
    }
    return names[i] = names[i] != NULL ? names[i] : selector->name;
}

sample_class *class_getSuperclass(const sample_class *class)
{
    return class->super;
}

int class_isMetaClass(const sample_class *class)
{
    return (class->info & INFO_META) != 0;
}

void *method_getImplementation(const sample_method *method)
{
    return method->code;
}

void *sample_object(sample_class *class)
{
    sample_class **object = calloc(1, OBJECT_BYTES);
    *object = class;
    return object;
}

sample_class *sample_subclass(sample_class *super, const char *name)
{
    sample_class *made = calloc(2, sizeof(*made));
    made[0] =
        (sample_class){.isa = &made[1], .super = super, .name = name, .info = INFO_USER_CREATED};
    made[1] = (sample_class){.name = name, .info = INFO_USER_CREATED};
    add_class(made);
    return made;
}

/* Finds the code of the method, preserves every argument, and jumps there. */
#define SEND(name, receiver, selector)                                                             \
    __asm__(".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"              \
            "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %rax\n"          \
            "sub $128, %rsp\n.cfi_def_cfa_offset 192\n"                                            \
            "movups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\nmovups %xmm2, 32(%rsp)\n"               \
            "mov " receiver ", %rax\nmov " selector ", %rsi\nmov %rax, %rdi\n"                     \
            "call sample_find@PLT\nmov %rax, %r11\n"                                               \
            "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\nmovups 32(%rsp), %xmm2\n"               \
            "add $128, %rsp\npop %rax\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n" \
            ".cfi_def_cfa_offset 8\njmp *%r11\n.cfi_endproc\n.size " name ", . - " name "\n")

SEND("objc_msgSend", "%rdi", "%rsi");
SEND("objc_msgSend_stret", "%rsi", "%rdx");
