#include "agent/inproc/jvm/loaders.h"

#include "agent/inproc/recorder/recorder.h"

enum { CAPACITY = 256 };

/* Numbers of collected loaders that are not reported yet; 0 if an element is free. If all are in
 * use, a collected loader is never reported: the recorder keeps its classes until the session ends.
 */
static _Atomic uint64_t collected[CAPACITY];
static _Atomic uint32_t collected_count;
static _Atomic uint32_t has_collected; /* 1 if a loader was collected. */

void sj_jvm_tag_loader(jobject loader, uint64_t number)
{
    jlong tag = 0;
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    if (number != 0 && loader != NULL &&
        (*jvmti)->GetTag(jvmti, loader, &tag) == JVMTI_ERROR_NONE && tag == 0) {
        (void)(*jvmti)->SetTag(jvmti, loader, (jlong)number);
    }
}

void JNICALL sj_jvm_on_loader_collected(jvmtiEnv *jvmti, jlong number)
{
    (void)jvmti;
    if (number > UINT32_MAX) {
        return; /* The object is not a loader. */
    }
    atomic_store(&has_collected, 1);
    for (uint32_t i = 0; i < CAPACITY; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&collected[i], &expected, (uint64_t)number)) {
            atomic_fetch_add(&collected_count, 1);
            return;
        }
    }
}

bool sj_jvm_has_collected_loader(void)
{
    return atomic_load(&has_collected) != 0;
}

void sj_jvm_report_collected_loaders(void)
{
    uint64_t numbers[CAPACITY];
    uint32_t count = 0;
    if (atomic_load(&collected_count) == 0 || !sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        const uint64_t number = atomic_exchange(&collected[i], 0);
        if (number != 0) {
            numbers[count++] = number;
            atomic_fetch_sub(&collected_count, 1);
        }
    }
    if (count != 0) {
        sj_jvm_report_unloaded(numbers, count);
    }
}
