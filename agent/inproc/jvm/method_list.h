/* The methods of a loaded class whose class file is not available. The format is a listing of an
 * sj_link_class. */
#ifndef SJ_AGENT_INPROC_JVM_METHOD_LIST_H
#define SJ_AGENT_INPROC_JVM_METHOD_LIST_H

#include "agent/inproc/jvm/internal.h"

/* A zeroed list is empty. */
typedef struct sj_method_list {
    unsigned char *bytes; /* Memory of the JVM: at least one byte for each method. */
    uint32_t used;
    uint32_t capacity;
    /* True if a text is missing: then the recorder is not asked about the class. */
    bool has_failed;
} sj_method_list;

/* Lists the methods of a class after its name in internal form. Returns false if the JVM refuses,
 * or if the list is too long. Call sj_method_list_deinit in any case. */
bool sj_method_list_init(jvmtiEnv *jvmti, const char *name, size_t name_bytes,
                         const jmethodID *methods, jint count, sj_method_list *list);
void sj_method_list_deinit(jvmtiEnv *jvmti, sj_method_list *list);

#endif
