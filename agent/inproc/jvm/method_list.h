/* Lists the methods of a loaded class whose class file is not available, in the format
 * sj_link_class_listing. */
#ifndef SJ_AGENT_INPROC_JVM_METHOD_LIST_H
#define SJ_AGENT_INPROC_JVM_METHOD_LIST_H

#include "agent/inproc/jvm/internal.h"

/* A zeroed list is empty. */
typedef struct sj_method_list {
    unsigned char *bytes; /* Allocated by the JVM. Has at least one byte per method. */
    uint32_t used;
    uint32_t capacity;
    bool has_failed; /* True if the list is incomplete. */
} sj_method_list;

/* Writes the name of a class (internal form) and then its methods. Returns false if the JVM
 * refuses, or if the list is too long. Call sj_method_list_deinit even if this returns false. */
bool sj_method_list_init(jvmtiEnv *jvmti, const char *name, size_t name_bytes,
                         const jmethodID *methods, jint count, sj_method_list *list);
void sj_method_list_deinit(jvmtiEnv *jvmti, sj_method_list *list);

#endif
