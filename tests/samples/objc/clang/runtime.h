/* The part of a runtime that programs need if clang compiles them for libobjc2
 * (-fobjc-runtime=gnustep-2.0). Debian does not package libobjc2. It reads classes and categories
 * from a module's tables, and sends messages through objc_msgSend. Selectors are compared by
 * name. */
#ifndef SJ_TESTS_SAMPLES_OBJC_CLANG_RUNTIME_H
#define SJ_TESTS_SAMPLES_OBJC_CLANG_RUNTIME_H

struct sample_class;

/* sample_object makes an object. sample_subclass makes a class at run time. */
void *sample_object(struct sample_class *class);
struct sample_class *sample_subclass(struct sample_class *super, const char *name);

#endif
