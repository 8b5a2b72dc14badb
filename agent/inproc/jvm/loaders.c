#include "agent/inproc/jvm/loaders.h"

#include "agent/inproc/recorder/recorder.h"

enum { GONE = 256 };

/* What no place was found for ends with the session. */
static _Atomic uint64_t gone[GONE]; /* 0: free */
static _Atomic uint32_t gone_count;
static _Atomic uint32_t has_gone; /* 1: one of them has */

void sj_jvm_follow_loader(jobject loader, uint64_t number)
{
    jlong tag = 0;
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    if (number != 0 && loader != NULL &&
        (*jvmti)->GetTag(jvmti, loader, &tag) == JVMTI_ERROR_NONE && tag == 0) {
        (void)(*jvmti)->SetTag(jvmti, loader, (jlong)number);
    }
}

void JNICALL sj_jvm_on_loader_gone(jvmtiEnv *jvmti, jlong number)
{
    (void)jvmti;
    if (number > UINT32_MAX) {
        return; /* a tag of others' */
    }
    atomic_store(&has_gone, 1);
    for (uint32_t i = 0; i < GONE; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&gone[i], &expected, (uint64_t)number)) {
            atomic_fetch_add(&gone_count, 1);
            return;
        }
    }
}

bool sj_jvm_has_gone_loader(void)
{
    return atomic_load(&has_gone) != 0;
}

void sj_jvm_report_gone_loaders(void)
{
    uint64_t numbers[GONE];
    uint32_t count = 0;
    if (atomic_load(&gone_count) == 0 || sj_jvm.options.unloaded == NULL ||
        !sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < GONE; i++) {
        const uint64_t number = atomic_exchange(&gone[i], 0);
        if (number != 0) {
            numbers[count++] = number;
            atomic_fetch_sub(&gone_count, 1);
        }
    }
    if (count != 0) {
        sj_jvm.options.unloaded(numbers, count);
    }
}
