/* Design notes
 *
 * Only threads that the JVM makes for it run virtual threads, and those run nothing else that has
 * probes. So a thread is asked once, at its first probe: which thread Java takes it for. */
#include "agent/inproc/jvm/virtual_threads.h"

#include "agent/inproc/jvm/internal.h"

#include <stdatomic.h>

enum { NOT_ASKED = 0, RUNS_NONE, RUNS_VIRTUAL };

static _Atomic(jclass) virtual_class; /* global references; NULL: the JVM has no such threads */
static jclass thread_class;
static jmethodID current_thread;
static _Atomic uint64_t calls;
static __thread uint8_t here __attribute__((tls_model("initial-exec")));

static bool forget_exception(JNIEnv *env)
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
    if (forget_exception(env) || local == NULL) {
        return NULL;
    }
    const jclass kept = (*env)->NewGlobalRef(env, local);
    (*env)->DeleteLocalRef(env, local);
    return kept;
}

void sj_virtual_threads_find(JNIEnv *env)
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
    if (!forget_exception(env) && current_thread != NULL) {
        atomic_store(&virtual_class, found);
    }
}

void sj_virtual_threads_forget(JNIEnv *env)
{
    const jclass found = atomic_exchange(&virtual_class, NULL);
    if (found != NULL) {
        (*env)->DeleteGlobalRef(env, found);
        (*env)->DeleteGlobalRef(env, thread_class);
    }
}

bool sj_virtual_threads_are_there(void)
{
    return atomic_load_explicit(&virtual_class, memory_order_relaxed) != NULL;
}

/* Asks Java; without an answer, as in a stack that has no room, the thread is asked again. */
static uint8_t ask(JNIEnv *env)
{
    uint8_t answer = NOT_ASKED;
    const jclass wanted = atomic_load(&virtual_class);
    if (wanted == NULL || !sj_jvm_begin_use()) {
        return NOT_ASKED;
    }
    const jobject thread = (*env)->CallStaticObjectMethod(env, thread_class, current_thread);
    if (!forget_exception(env) && thread != NULL) {
        answer = (*env)->IsInstanceOf(env, thread, wanted) != 0 ? RUNS_VIRTUAL : RUNS_NONE;
        (*env)->DeleteLocalRef(env, thread);
    }
    sj_jvm_end_use();
    return answer;
}

bool sj_virtual_threads_run_here(JNIEnv *env)
{
    if (!sj_virtual_threads_are_there()) {
        return false;
    }
    if (here == NOT_ASKED) {
        here = ask(env);
    }
    return here == RUNS_VIRTUAL;
}

void sj_virtual_threads_count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

uint64_t sj_virtual_threads_calls(void)
{
    return atomic_load(&calls);
}
