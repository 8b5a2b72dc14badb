/* As much of a runtime as programs need that clang compiles for libobjc2
 * (-fobjc-runtime=gnustep-2.0), which Debian does not package: classes and categories are taken
 * from a module's tables, messages go through objc_msgSend. Selectors are compared by name. */
#ifndef SJ_TESTS_SAMPLES_OBJC_CLANG_RUNTIME_H
#define SJ_TESTS_SAMPLES_OBJC_CLANG_RUNTIME_H

struct sample_class;

/* Makes an object; makes a class at run time. */
void *sample_object(struct sample_class *class);
struct sample_class *sample_subclass(struct sample_class *super, const char *name);

#endif
