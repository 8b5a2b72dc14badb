/* Names of the methods of an assembly: "Namespace.Class:Method(types)". A slash separates a class
 * from one that is nested in it. Types are written as Mono writes them: int, string, System.Uri,
 * T[], int&. */
#ifndef SJ_AGENT_RUNTIMES_MONO_METHODS_H
#define SJ_AGENT_RUNTIMES_MONO_METHODS_H

#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/runtime.h"

enum { SJ_MONO_NAME_BYTES = 1024 }; /* Longer names end with "...". */

/* Passes every method of an assembly to `sink`, in the order of tokens. Parts of a name that the
 * file lacks are left out. Bytes that would break a line become '?'. Returns SJ_ENOMEM, or what the
 * sink returned. */
SJ_MUST_CHECK sj_status sj_mono_each_method(const sj_assembly *assembly, sj_container_sink sink,
                                            void *context);

/* The `read_container_classes` of sj_runtime. */
SJ_MUST_CHECK sj_status sj_mono_read_classes(const char *path, sj_slice id,
                                             sj_container_class_sink sink, void *context);

/* The `read_container` of sj_runtime. */
SJ_MUST_CHECK sj_status sj_mono_read_file(const char *path, sj_slice id, sj_container_sink sink,
                                          void *context);

/* The `is_system_container` of sj_runtime. It decides by the public key of the assembly. */
bool sj_mono_is_framework(const char *path, sj_slice id);

#endif
