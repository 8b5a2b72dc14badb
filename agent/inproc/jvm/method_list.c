#include "agent/inproc/jvm/method_list.h"

#include <string.h>

static void append(jvmtiEnv *jvmti, sj_method_list *list, const char *text, size_t bytes)
{
    if (list->has_failed) {
        return;
    }
    if (list->used + bytes > list->capacity) {
        unsigned char *larger = NULL;
        const uint64_t capacity = 2 * (list->used + (uint64_t)bytes);
        if (capacity > SJ_LINK_CLASS_BYTES ||
            (*jvmti)->Allocate(jvmti, (jlong)capacity, &larger) != JVMTI_ERROR_NONE) {
            list->has_failed = true;
            return;
        }
        memcpy(larger, list->bytes, list->used);
        (void)(*jvmti)->Deallocate(jvmti, list->bytes);
        list->bytes = larger;
        list->capacity = (uint32_t)capacity;
    }
    memcpy(list->bytes + list->used, text, bytes);
    list->used += (uint32_t)bytes;
}

static void append_method(jvmtiEnv *jvmti, sj_method_list *list, jmethodID method)
{
    enum { WITHOUT_CODE = 0x0400 | 0x0100 }; /* abstract, native */
    char *name = NULL;
    char *descriptor = NULL;
    jint modifiers = WITHOUT_CODE;
    (void)(*jvmti)->GetMethodModifiers(jvmti, method, &modifiers);
    if ((*jvmti)->GetMethodName(jvmti, method, &name, &descriptor, NULL) != JVMTI_ERROR_NONE) {
        list->has_failed = true;
        return;
    }
    append(jvmti, list, (modifiers & WITHOUT_CODE) != 0 ? "-" : "+", 1);
    append(jvmti, list, name, strlen(name) + 1);
    append(jvmti, list, descriptor, strlen(descriptor) + 1);
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)descriptor);
}

bool sj_method_list_init(jvmtiEnv *jvmti, const char *name, size_t name_bytes,
                         const jmethodID *methods, jint count, sj_method_list *list)
{
    *list = (sj_method_list){.capacity = SJ_LINK_LOADER_BYTES};
    if ((*jvmti)->Allocate(jvmti, list->capacity, &list->bytes) != JVMTI_ERROR_NONE) {
        list->bytes = NULL;
        return false;
    }
    append(jvmti, list, name, name_bytes);
    append(jvmti, list, "", 1);
    for (jint i = 0; i < count && !list->has_failed; i++) {
        append_method(jvmti, list, methods[i]);
    }
    return !list->has_failed;
}

void sj_method_list_deinit(jvmtiEnv *jvmti, sj_method_list *list)
{
    (void)(*jvmti)->Deallocate(jvmti, list->bytes);
    list->bytes = NULL;
}
