/* Design notes
 *
 * Hot path: enter, leave and unwind, called by rewritten methods with the function's id. The JVM
 * has put the thread into native state, so a thread that waits for room here does not delay a
 * safepoint. */
#include "agent/inproc/jvm/internal.h"

#include "agent/inproc/recorder/internal.h"

#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

static inline void record(uint32_t tag, uint64_t stack)
{
    const uint64_t ticks = sj_arch_ticks();
    const uint64_t address = sj_recorder_reserve(tag);
    *(volatile uint64_t *)address = (ticks & TICKS48_MASK) | stack << 48;
    /* The tag, in the upper half, says that the record is complete. */
    atomic_store_explicit((_Atomic uint64_t *)(address + 8), (uint64_t)tag << 32,
                          memory_order_release);
}

static void JNICALL enter(JNIEnv *env, jclass class, jint function)
{
    (void)env;
    (void)class;
    record(sj_record_make_tag(SJ_RECORD_ENTER, (uint32_t)function), SJ_MANAGED_CALL);
}

static void JNICALL leave(JNIEnv *env, jclass class, jint function)
{
    (void)env;
    (void)class;
    record(sj_record_make_tag(SJ_RECORD_LEAVE, (uint32_t)function), SJ_MANAGED_CALL);
}

static void JNICALL unwind(JNIEnv *env, jclass class, jint function)
{
    (void)env;
    (void)class;
    record(sj_record_make_tag(SJ_RECORD_LEAVE, (uint32_t)function), SJ_MANAGED_THROWN);
}

jclass sj_jvm_define_probes(JNIEnv *env)
{
    static const JNINativeMethod methods[] = {{"enter", "(I)V", (void *)enter},
                                              {"leave", "(I)V", (void *)leave},
                                              {"unwind", "(I)V", (void *)unwind}};
    jclass class =
        (*env)->DefineClass(env, SJ_JVM_PROBE_CLASS, NULL, (const jbyte *)sj_jvm_probe_class,
                            (jsize)sj_jvm_probe_class_bytes);
    if (class != NULL && (*env)->RegisterNatives(env, class, methods, 3) != JNI_OK) {
        (*env)->DeleteLocalRef(env, class);
        class = NULL;
    }
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
    return class;
}
