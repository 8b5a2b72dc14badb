/* Names of Java methods for people: pkg.Class.method(types), as Method.toString has them. */
#ifndef SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H
#define SJ_AGENT_RUNTIMES_JVM_METHOD_NAME_H

#include "agent/runtimes/jvm/class_file.h"

enum { SJ_JAVA_NAME_BYTES = 2048 };

/* sj_java_class_name writes the name of a class, terminated and cut to the room: dots for slashes,
 * \xNN for bytes that are no UTF-8 or no text. Any thread. */
void sj_java_class_name(sj_slice internal, char name[SJ_JAVA_NAME_BYTES]);

/* sj_java_method_name does so for a method of `file`. A descriptor that follows no format is shown
 * as it is. Any thread. */
void sj_java_method_name(const sj_class_file *file, const sj_class_method *method,
                         char name[SJ_JAVA_NAME_BYTES]);

#endif
