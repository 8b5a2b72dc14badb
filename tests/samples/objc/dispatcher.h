/* A small dispatcher like those of libobjc2 and Apple. objc_msgSend finds a method in the class's
 * cache and jumps to it with every argument register unchanged. If the cache has no entry, it looks
 * the method up. A message without a method goes to the class's forwarding method. The file also
 * has the part of the runtime's API that a tracer needs. */
#ifndef SJ_TESTS_SAMPLES_OBJC_DISPATCHER_H
#define SJ_TESTS_SAMPLES_OBJC_DISPATCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef const char *sample_selector; /* interned: equal texts have the same pointer */
typedef void (*sample_code)(void);

typedef struct sample_method {
    sample_selector selector;
    sample_code code;
} sample_method;

enum { SAMPLE_CACHE = 16, SAMPLE_METHODS = 32 };

typedef struct sample_class {
    struct sample_class *isa; /* metaclass; NULL in a metaclass */
    struct sample_class *super;
    sample_method cache[SAMPLE_CACHE]; /* the assembly relies on offset 16 */
    const char *name;
    sample_method methods[SAMPLE_METHODS];
    uint32_t method_count;
} sample_class;

typedef struct sample_object {
    sample_class *isa;
} sample_object;

/* objc_msgSend and, for results in memory (x86-64), objc_msgSend_stret. Cast them before use. */
void objc_msgSend(void);
void objc_msgSend_stret(void);

sample_selector sel_registerName(const char *name);
void sample_class_init(sample_class *class, sample_class *meta, sample_class *super,
                       const char *name);
void sample_class_add(sample_class *class, const char *selector, sample_code code);

/* Returns the code for a message. The assembly calls this if the cache has no entry. */
sample_code objc_sample_find(sample_object *receiver, sample_selector selector);

const char *class_getName(const sample_class *class);
const char *sel_getName(sample_selector selector);
const sample_class *class_getSuperclass(const sample_class *class);
bool class_isMetaClass(const sample_class *class);
const sample_method *class_getInstanceMethod(const sample_class *class, sample_selector selector);
sample_code method_getImplementation(const sample_method *method);

#endif
