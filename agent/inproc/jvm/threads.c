/* Design notes
 *
 * A thread that ends asks the JVM how many bytes it has allocated. When the JVM ends or the agent
 * detaches, one thread asks for all running threads. It needs the JVM's number of each thread, so
 * each thread stores its kernel id and its JVM number when it starts. Threads that do not fit into
 * the table, or that started before the agent was attached, are counted only when they end. */
#include "agent/inproc/jvm/threads.h"

#include "agent/inproc/jvm/management.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>

enum { THREADS = 1024 };

typedef struct known_thread {
    _Atomic uint32_t tid; /* Kernel id. 0: free. BEING_WRITTEN: a thread is writing `number`. */
    int64_t number;       /* The JVM's number of the thread. */
} known_thread;

enum { BEING_WRITTEN = 1 };

static known_thread threads[THREADS];

/* Returns the JVM's number of a thread, or 0 if it is not known. */
static int64_t java_number_of(JNIEnv *env, jthread thread)
{
    const jclass class = (*env)->FindClass(env, "java/lang/Thread");
    const jfieldID field = class != NULL ? (*env)->GetFieldID(env, class, "tid", "J") : NULL;
    const int64_t number = field != NULL ? (*env)->GetLongField(env, thread, field) : 0;
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
    if (class != NULL) {
        (*env)->DeleteLocalRef(env, class);
    }
    return number;
}

static bool can_report(void)
{
    return sj_recorder_is_armed() && sj_recorder_may_call();
}

void JNICALL sj_jvm_on_thread_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
    (void)jvmti;
    if (!can_report()) {
        return;
    }
    const uint32_t tid = sj_sys_tid();
    const int64_t number = java_number_of(env, thread);
    for (uint32_t i = 0; number != 0 && i < THREADS; i++) {
        uint32_t expected = 0;
        if (atomic_load(&threads[i].tid) == 0 &&
            atomic_compare_exchange_strong(&threads[i].tid, &expected, BEING_WRITTEN)) {
            threads[i].number = number;
            atomic_store(&threads[i].tid, tid);
            return;
        }
    }
}

static void report_thread(uint32_t tid, bool is_known, uint64_t bytes)
{
    sj_recorder_count_thread(tid, is_known ? &bytes : NULL);
}

void JNICALL sj_jvm_on_thread_end(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
    uint64_t bytes;
    (void)jvmti;
    (void)thread;
    if (!can_report()) {
        return;
    }
    const uint32_t tid = sj_sys_tid();
    const bool is_known = sj_jvm_allocated(env, 0, &bytes);
    report_thread(tid, is_known, bytes);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = tid;
        if (atomic_compare_exchange_strong(&threads[i].tid, &expected, 0)) {
            return;
        }
    }
}

void sj_jvm_count_threads(JNIEnv *env)
{
    uint64_t bytes;
    if (!can_report()) {
        return;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t tid = atomic_load(&threads[i].tid);
        if (tid > BEING_WRITTEN && sj_jvm_allocated(env, threads[i].number, &bytes)) {
            report_thread(tid, true, bytes);
        }
    }
    if (sj_jvm_allocated(env, 0, &bytes)) { /* The calling thread may not be in the table. */
        report_thread(sj_sys_tid(), true, bytes);
    }
}
