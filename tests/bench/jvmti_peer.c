/* A JVMTI agent that does what an ordinary tracer does. At MethodEntry and MethodExit it reads the
 * clock and writes to a ring. jvm_bench.py uses it: -agentpath:.../libjvmti_peer.so */
#include <jvmti.h>
#include <stdint.h>
#include <x86intrin.h>

enum { RING = 4096 };

static __thread uint64_t ring[RING];
static __thread uint32_t at;

static void JNICALL on_entry(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method)
{
    (void)jvmti;
    (void)env;
    (void)thread;
    ring[at++ % RING] = __rdtsc() ^ (uint64_t)(uintptr_t)method;
}

static void JNICALL on_exit(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method,
                            jboolean is_thrown, jvalue value)
{
    (void)is_thrown;
    (void)value;
    on_entry(jvmti, env, thread, method);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *jvmti = NULL;
    const jvmtiCapabilities wanted = {.can_generate_method_entry_events = 1,
                                      .can_generate_method_exit_events = 1};
    const jvmtiEventCallbacks callbacks = {.MethodEntry = on_entry, .MethodExit = on_exit};
    (void)options;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK ||
        (*jvmti)->AddCapabilities(jvmti, &wanted) != JVMTI_ERROR_NONE ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE) {
        return JNI_ERR;
    }
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_EXIT, NULL);
    return JNI_OK;
}
