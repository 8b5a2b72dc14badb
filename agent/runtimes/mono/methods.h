/* Reads the methods and classes of an assembly. The name of a method is
 * "Namespace.Class:Method(types)". A nested class follows its enclosing class and a slash. Types
 * are written like Mono writes them: int, string, System.Uri, T[], int&. */
#ifndef SJ_AGENT_RUNTIMES_MONO_METHODS_H
#define SJ_AGENT_RUNTIMES_MONO_METHODS_H

#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/runtime.h"

enum { SJ_MONO_NAME_BYTES = 1024 }; /* Longer names end with "...". */

/* Passes every method of an assembly to `sink`, in the order of tokens. If the file lacks a part of
 * a name, leaves out that part. Control characters become '?'. Returns SJ_ENOMEM, or the error of
 * the sink. */
SJ_MUST_CHECK sj_status sj_mono_each_method(const sj_assembly *assembly, sj_container_sink sink,
                                            void *context);

/* Implements `read_container_classes` of sj_runtime. Returns its errors. */
SJ_MUST_CHECK sj_status sj_mono_read_classes(const char *path, sj_slice id,
                                             sj_container_class_sink sink, void *context);

/* Implements `read_container` of sj_runtime. Returns its errors. */
SJ_MUST_CHECK sj_status sj_mono_read_file(const char *path, sj_slice id, sj_container_sink sink,
                                          void *context);

/* Implements `is_system_container` of sj_runtime, by the public key of the assembly. */
bool sj_mono_is_framework(const char *path, sj_slice id);

#endif
