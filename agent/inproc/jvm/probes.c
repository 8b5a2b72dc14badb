/* Design notes
 *
 * Hot path: rewritten methods call enter, leave and unwind with the function's id. They are native
 * methods, so the thread is in native state: it may wait here for buffer space without delaying a
 * safepoint. */
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/muted.h"
#include "agent/inproc/jvm/probe_record.h"
#include "agent/inproc/jvm/virtual_threads.h"

static inline void record_probe(JNIEnv *env, sj_record_kind kind, jint function, uint64_t stack)
{
    if (sj_virtual_threads_run_here(env)) {
        if (kind == SJ_RECORD_ENTER) {
            sj_virtual_threads_count();
        }
    } else if (!sj_muted_has(&sojourn_agent_state, (uint32_t)function)) {
        const uint64_t ticks = sj_arch_ticks();
        const uint32_t tag = sj_record_make_tag(kind, (uint32_t)function);
        sj_jvm_put_record(sj_recorder_reserve(tag), ticks, tag, stack);
    }
}

static void JNICALL enter(JNIEnv *env, jclass class, jint function)
{
    (void)class;
    record_probe(env, SJ_RECORD_ENTER, function, SJ_MANAGED_CALL);
}

static void JNICALL leave(JNIEnv *env, jclass class, jint function)
{
    (void)class;
    record_probe(env, SJ_RECORD_LEAVE, function, SJ_MANAGED_CALL);
}

static void JNICALL unwind(JNIEnv *env, jclass class, jint function)
{
    (void)class;
    record_probe(env, SJ_RECORD_LEAVE, function, SJ_MANAGED_THROWN);
}

static bool clear_exception(JNIEnv *env)
{
    const bool is_pending = (*env)->ExceptionCheck(env) != 0;
    if (is_pending) {
        (*env)->ExceptionClear(env);
    }
    return is_pending;
}

jclass sj_jvm_define_probes(JNIEnv *env)
{
    jclass class =
        (*env)->DefineClass(env, SJ_JVM_PROBE_CLASS, NULL, (const jbyte *)sj_jvm_probe_class,
                            (jsize)sj_jvm_probe_class_bytes);
    if (clear_exception(env) || class == NULL) { /* An earlier agent has defined it. */
        class = (*env)->FindClass(env, SJ_JVM_PROBE_CLASS);
        (void)clear_exception(env);
    }
    return class;
}

uint64_t sj_jvm_probe_address(uint32_t probe)
{
    switch (probe) {
    case SJ_JVM_ENTER:
        return (uint64_t)(uintptr_t)enter;
    case SJ_JVM_LEAVE_METHOD:
        return (uint64_t)(uintptr_t)leave;
    default:
        return (uint64_t)(uintptr_t)unwind;
    }
}

bool sj_jvm_register_probes(JNIEnv *env, jclass probe_class, sj_lasting *lasting, uint32_t first)
{
    enum { PROBES = 3 };
    JNINativeMethod methods[PROBES] = {
        {"enter", "(I)V", NULL}, {"leave", "(I)V", NULL}, {"unwind", "(I)V", NULL}};
    for (uint32_t i = 0; i < PROBES; i++) {
        methods[i].fnPtr =
            (void *)(uintptr_t)(lasting != NULL ? sj_lasting_address(lasting, first + i)
                                                : sj_jvm_probe_address(i));
    }
    const bool are_registered =
        (*env)->RegisterNatives(env, probe_class, methods, PROBES) == JNI_OK;
    return !clear_exception(env) && are_registered;
}
