/* A JVMTI agent that counts MethodEntry events, except those of native methods and of the boot
 * loader's classes. At the end it writes a line for each method: count, class, name, descriptor.
 * -agentpath:.../libjvmti_entries.so=FILE */
#include <jvmti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 14, ID_SHIFT = 3 };

typedef struct counted_method {
    jmethodID method;
    uint64_t entries;
} counted_method;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static counted_method counts[SLOTS];
static char path[4096];

static void JNICALL on_entry(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method)
{
    (void)jvmti;
    (void)env;
    (void)thread;
    pthread_mutex_lock(&mutex);
    uintptr_t at = (uintptr_t)method >> ID_SHIFT;
    while (counts[at % SLOTS].method != method && counts[at % SLOTS].method != NULL) {
        at++;
    }
    counts[at % SLOTS].method = method;
    counts[at % SLOTS].entries++;
    pthread_mutex_unlock(&mutex);
}

static void write_method(jvmtiEnv *jvmti, const counted_method *counted, FILE *file)
{
    jclass class = NULL;
    jobject loader = NULL;
    jboolean is_native = JNI_FALSE;
    char *signature = NULL;
    char *name = NULL;
    char *descriptor = NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, counted->method, &class) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetClassLoader(jvmti, class, &loader) == JVMTI_ERROR_NONE && loader != NULL &&
        (*jvmti)->IsMethodNative(jvmti, counted->method, &is_native) == JVMTI_ERROR_NONE &&
        !is_native &&
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetMethodName(jvmti, counted->method, &name, &descriptor, NULL) ==
            JVMTI_ERROR_NONE) {
        fprintf(file, "%llu %s %s %s\n", (unsigned long long)counted->entries, signature, name,
                descriptor);
    }
}

static void JNICALL on_death(jvmtiEnv *jvmti, JNIEnv *env)
{
    (void)env;
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        abort();
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (counts[i].method != NULL) {
            write_method(jvmti, &counts[i], file);
        }
    }
    fclose(file);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *jvmti = NULL;
    const jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1};
    const jvmtiEventCallbacks callbacks = {.MethodEntry = on_entry, .VMDeath = on_death};
    (void)reserved;
    snprintf(path, sizeof(path), "%s", options);
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK ||
        (*jvmti)->AddCapabilities(jvmti, &wanted) != JVMTI_ERROR_NONE ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE) {
        return JNI_ERR;
    }
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    return JNI_OK;
}
