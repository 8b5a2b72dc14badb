/* Readable names of Java methods: pkg.Class.method(types), as Method.toString writes them. */
#ifndef SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H
#define SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H

#include "agent/runtimes/jvm/class_file.h"

enum { SJ_JAVA_NAME_BYTES = 2048 };

/* Writes the name of a class, terminated and cut to the capacity. Slashes become dots. Bytes that
 * are not UTF-8, or control characters, become \xNN. Thread-safe. */
void sj_java_class_name(sj_slice internal, char name[SJ_JAVA_NAME_BYTES]);

/* Writes the name of a method of `file` in the same way. A malformed descriptor is copied
 * unchanged. Thread-safe. */
void sj_java_method_name(const sj_class_file *file, const sj_class_method *method,
                         char name[SJ_JAVA_NAME_BYTES]);

#endif
