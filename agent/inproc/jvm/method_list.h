/* The methods of a loaded class whose file is not at hand, as JVMTI names them and as they go to
 * the recorder: the listing of an sj_link_class. */
#ifndef SJ_AGENT_INPROC_JVM_METHOD_LIST_H
#define SJ_AGENT_INPROC_JVM_METHOD_LIST_H

#include "agent/inproc/jvm/internal.h"

/* Zeroed is empty. */
typedef struct sj_method_list {
    unsigned char *bytes; /* the JVM's memory: at least one for each method */
    uint32_t used;
    uint32_t capacity;
    bool has_failed; /* a text is missing: the class is not asked about */
} sj_method_list;

/* sj_method_list_make lists a class's methods below its name in internal form. False: the JVM
 * refused, or it is too long. Release with sj_method_list_free in any case. */
bool sj_method_list_make(jvmtiEnv *jvmti, const char *name, size_t name_bytes,
                         const jmethodID *methods, jint count, sj_method_list *list);
void sj_method_list_free(jvmtiEnv *jvmti, sj_method_list *list);

#endif
