/* Design notes
 *
 * The JVM creates separate threads that run virtual threads and nothing else with probes. So it
 * suffices to ask Java once per thread, at its first probe, whether Thread.currentThread is
 * virtual. */
#include "agent/inproc/jvm/virtual_threads.h"

#include "agent/inproc/jvm/internal.h"

#include <stdatomic.h>

enum { NOT_ASKED = 0, RUNS_NONE, RUNS_VIRTUAL };

/* Global references. virtual_class is NULL if the JVM has no virtual threads. */
static _Atomic(jclass) virtual_class;
static jclass thread_class;
static jmethodID current_thread;
static _Atomic uint64_t calls;
static __thread uint8_t thread_kind __attribute__((tls_model("initial-exec")));

static bool clear_exception(JNIEnv *env)
{
    const bool is_pending = (*env)->ExceptionCheck(env) != 0;
    if (is_pending) {
        (*env)->ExceptionClear(env);
    }
    return is_pending;
}

static jclass find_class(JNIEnv *env, const char *name)
{
    const jclass local = (*env)->FindClass(env, name);
    if (clear_exception(env) || local == NULL) {
        return NULL;
    }
    const jclass global = (*env)->NewGlobalRef(env, local);
    (*env)->DeleteLocalRef(env, local);
    return global;
}

void sj_virtual_threads_init(JNIEnv *env)
{
    const jclass found = find_class(env, "java/lang/VirtualThread");
    if (found == NULL) {
        return;
    }
    thread_class = find_class(env, "java/lang/Thread");
    current_thread =
        thread_class != NULL
            ? (*env)->GetStaticMethodID(env, thread_class, "currentThread", "()Ljava/lang/Thread;")
            : NULL;
    if (!clear_exception(env) && current_thread != NULL) {
        atomic_store(&virtual_class, found);
    }
}

void sj_virtual_threads_deinit(JNIEnv *env)
{
    const jclass found = atomic_exchange(&virtual_class, NULL);
    if (found != NULL) {
        (*env)->DeleteGlobalRef(env, found);
        (*env)->DeleteGlobalRef(env, thread_class);
    }
}

bool sj_virtual_threads_exist(void)
{
    return atomic_load_explicit(&virtual_class, memory_order_relaxed) != NULL;
}

/* Asks Java whether the calling thread runs virtual threads. Returns NOT_ASKED if that fails, for
 * example because the stack is full; then the next probe asks again. */
static uint8_t ask_java(JNIEnv *env)
{
    uint8_t kind = NOT_ASKED;
    const jclass wanted = atomic_load(&virtual_class);
    if (wanted == NULL || !sj_jvm_begin_use()) {
        return NOT_ASKED;
    }
    const jobject thread = (*env)->CallStaticObjectMethod(env, thread_class, current_thread);
    if (!clear_exception(env) && thread != NULL) {
        kind = (*env)->IsInstanceOf(env, thread, wanted) != 0 ? RUNS_VIRTUAL : RUNS_NONE;
        (*env)->DeleteLocalRef(env, thread);
    }
    sj_jvm_end_use();
    return kind;
}

bool sj_virtual_threads_run_here(JNIEnv *env)
{
    if (!sj_virtual_threads_exist()) {
        return false;
    }
    if (thread_kind == NOT_ASKED) {
        thread_kind = ask_java(env);
    }
    return thread_kind == RUNS_VIRTUAL;
}

void sj_virtual_threads_count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

uint64_t sj_virtual_threads_calls(void)
{
    return atomic_load(&calls);
}
