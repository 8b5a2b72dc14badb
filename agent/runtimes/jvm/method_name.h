/* Writes readable names of Java methods: pkg.Class.method(types), like java.lang.reflect.Method. */
#ifndef SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H
#define SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H

#include "agent/runtimes/jvm/class_file.h"

enum { SJ_JAVA_NAME_BYTES = 2048 };

/* Writes the name of a class from its internal name. Truncates it to the capacity. Slashes become
 * dots; control characters and bytes that are not UTF-8 become \xNN. Thread-safe. */
void sj_java_class_name(sj_slice internal, char name[SJ_JAVA_NAME_BYTES]);

/* Writes the name of a method of `file`. Truncates and replaces bytes like sj_java_class_name. If
 * its descriptor is malformed, writes the descriptor unchanged. Thread-safe. */
void sj_java_method_name(const sj_class_file *file, const sj_class_method *method,
                         char name[SJ_JAVA_NAME_BYTES]);

#endif
