/* The methods of an assembly, by name: "Namespace.Class:Method(types)", nested classes behind their
 * own with a slash, types as Mono writes them: int, string, System.Uri, T[], int&. */
#ifndef SJ_AGENT_RUNTIMES_MONO_METHODS_H
#define SJ_AGENT_RUNTIMES_MONO_METHODS_H

#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/runtime.h"

enum { SJ_MONO_NAME_BYTES = 1024 }; /* longer names end with "..." */

/* sj_mono_each_method hands every method of an assembly to `sink`, token by token. What the file
 * does not say is left out of its name; bytes that would break a line are shown as '?'. SJ_ENOMEM,
 * or what the sink returned. */
SJ_MUST_CHECK sj_status sj_mono_each_method(const sj_assembly *assembly, sj_container_sink sink,
                                            void *context);

/* sj_mono_read_classes is the `read_container_classes` of sj_runtime. */
SJ_MUST_CHECK sj_status sj_mono_read_classes(const char *path, sj_slice id,
                                             sj_container_class_sink sink, void *context);

/* sj_mono_read_file is the `read_container` of sj_runtime. */
SJ_MUST_CHECK sj_status sj_mono_read_file(const char *path, sj_slice id, sj_container_sink sink,
                                          void *context);

/* sj_mono_is_framework is is_system_container (runtime.h): by the public key of the assembly. */
bool sj_mono_is_framework(const char *path, sj_slice id);

#endif
