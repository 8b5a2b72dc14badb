/* Design notes
 *
 * The JVM reports pauses of the garbage collector on its own thread, while all other threads are
 * stopped. So the callbacks only store the times and never wait. They have a separate JVMTI
 * environment, which is created when the program watches its first thread. Programs that watch no
 * thread have no cost. */
#include "agent/inproc/jvm/stall.h"

#include "agent/inproc/jvm/commands.h"
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/management.h"
#include "agent/inproc/jvm/natives.h"
#include "agent/inproc/jvm/values.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <time.h>

enum { PAUSES = 64, PAUSE_TEXT_BYTES = 64, NUMBER_BYTES = 20 };

typedef struct pause {
    _Atomic uint64_t begin_ns; /* CLOCK_MONOTONIC */
    _Atomic uint64_t end_ns;
} pause;

static pause pauses[PAUSES];
static _Atomic uint64_t pause_count; /* Number of pauses that have ended. */
static jvmtiEnv *collector_events;   /* NULL until the program watches a thread. */
static sj_owner_lock opening;        /* Guards collector_events. */
/* The safepoint counters when this thread posted its latest heartbeat. */
static __thread sj_jvm_stops stops_before __attribute__((tls_model("initial-exec")));
static __thread bool knows_stops __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)SJ_SYS(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static pause *pause_at(uint64_t number)
{
    return &pauses[number % PAUSES];
}

static void JNICALL on_pause_start(jvmtiEnv *jvmti)
{
    (void)jvmti;
    if (sj_recorder_may_call()) {
        atomic_store(&pause_at(atomic_load(&pause_count))->begin_ns, now_ns());
    }
}

static void JNICALL on_pause_end(jvmtiEnv *jvmti)
{
    (void)jvmti;
    if (sj_recorder_may_call()) {
        atomic_store(&pause_at(atomic_load(&pause_count))->end_ns, now_ns());
        atomic_fetch_add(&pause_count, 1);
    }
}

static jvmtiEnv *open_collector_events(JNIEnv *env)
{
    const jvmtiCapabilities capabilities = {.can_generate_garbage_collection_events = 1};
    const jvmtiEventCallbacks callbacks = {
        .GarbageCollectionStart = (jvmtiEventGarbageCollectionStart)sj_jvm_lasting_function(
            SJ_JVM_ON_PAUSE, (void *)on_pause_start),
        .GarbageCollectionFinish = (jvmtiEventGarbageCollectionFinish)sj_jvm_lasting_function(
            SJ_JVM_ON_PAUSE_END, (void *)on_pause_end)};
    JavaVM *vm = NULL;
    jvmtiEnv *jvmti = NULL;
    if ((*env)->GetJavaVM(env, &vm) != JNI_OK ||
        (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return NULL;
    }
    if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != JVMTI_ERROR_NONE ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE) {
        (void)(*jvmti)->DisposeEnvironment(jvmti);
        return NULL;
    }
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
                                             JVMTI_EVENT_GARBAGE_COLLECTION_START, NULL);
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE,
                                             JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, NULL);
    return jvmti;
}

jint JNICALL sj_jvm_thread_id(JNIEnv *env, jclass class)
{
    (void)class;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call() || !sj_jvm_begin_use()) {
        return 0;
    }
    if (sj_owner_lock_acquire(&opening)) {
        if (collector_events == NULL) {
            collector_events = open_collector_events(env);
        }
        sj_owner_lock_free(&opening);
    }
    sj_jvm_end_use();
    return (jint)sj_sys_tid();
}

void JNICALL sj_jvm_posted(JNIEnv *env, jclass class)
{
    (void)class;
    knows_stops = sj_recorder_is_armed() && sj_jvm_begin_use();
    if (knows_stops) {
        knows_stops = sj_jvm_count_stops(env, &stops_before);
        sj_jvm_end_use();
    }
}

void sj_jvm_stop_pauses(void)
{
    if (sj_owner_lock_acquire(&opening)) {
        if (collector_events != NULL) {
            (void)(*collector_events)->DisposeEnvironment(collector_events);
            collector_events = NULL;
        }
        sj_owner_lock_free(&opening);
    }
}

void sj_jvm_pauses_after_fork(void)
{
    sj_owner_lock_free(&opening);
}

static uint32_t add_text(char *text, uint32_t used, const char *more)
{
    const uint32_t bytes = (uint32_t)strlen(more);
    memcpy(text + used, more, bytes);
    return used + bytes;
}

static uint32_t add_number(char *text, uint32_t used, uint64_t number)
{
    char digits[NUMBER_BYTES + 1];
    uint32_t at = NUMBER_BYTES;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return add_text(text, used, digits + at);
}

/* Appends the safepoints since the heartbeat as JSON, if they are known. Returns the new length. */
static uint32_t write_stops(JNIEnv *env, char *text, uint32_t used)
{
    sj_jvm_stops now;
    if (!knows_stops || !sj_jvm_count_stops(env, &now)) {
        return used;
    }
    used = add_text(text, used, ",\"safepoints\":{\"count\":");
    used = add_number(text, used, now.count - stops_before.count);
    used = add_text(text, used, ",\"ms\":");
    used = add_number(text, used, now.milliseconds - stops_before.milliseconds);
    return add_text(text, used, "}");
}

/* Writes the rest of the JSON object: the heartbeat's age, safepoints and pauses since then.
 * Returns the length. */
static uint32_t write_pauses(JNIEnv *env, char *text, uint64_t age_ns)
{
    const uint64_t now = now_ns();
    const uint64_t count = atomic_load(&pause_count);
    /* Uses only half of the ring: older pauses may be overwritten meanwhile. */
    const uint64_t first = count > PAUSES / 2 ? count - PAUSES / 2 : 0;
    uint32_t used = add_text(text, 0, ",\"age_ns\":");
    used = add_number(text, used, age_ns);
    used = write_stops(env, text, used);
    used = add_text(text, used, ",\"pauses\":[");
    bool is_first = true;
    for (uint64_t i = first; i < count; i++) {
        const uint64_t begin = atomic_load(&pause_at(i)->begin_ns);
        const uint64_t end = atomic_load(&pause_at(i)->end_ns);
        if (end < begin || end > now || now - end > age_ns) {
            continue;
        }
        used = add_text(text, used, is_first ? "{\"ago_ns\":" : ",{\"ago_ns\":");
        used = add_number(text, used, now - begin);
        used = add_text(text, used, ",\"ns\":");
        used = add_number(text, used, end - begin);
        used = add_text(text, used, "}");
        is_first = false;
    }
    return add_text(text, used, "]}");
}

void JNICALL sj_jvm_stalled(JNIEnv *env, jclass class, jstring name, jlong age_ns, jstring json)
{
    char tail[(PAUSES / 2 + 4) * PAUSE_TEXT_BYTES];
    sj_value_text text = {0};
    (void)class;
    if (age_ns < 0 || json == NULL || !sj_recorder_is_armed() || !sj_recorder_may_call() ||
        !sj_jvm_begin_use()) {
        return;
    }
    const bool is_text = sj_jvm_describe_string(env, name, &text);
    sj_jvm_end_use();
    if (!is_text || text.used == 0) {
        return;
    }
    const char *head = (*env)->GetStringUTFChars(env, json, NULL); /* The text is ASCII. */
    if (head == NULL) {
        (*env)->ExceptionClear(env);
        return;
    }
    const sj_jvm_stall stall = {
        .name = text.bytes,
        .name_bytes = text.used,
        .age_ns = (uint64_t)age_ns,
        .parts = {head, tail},
        .part_bytes = {(uint32_t)strlen(head), write_pauses(env, tail, (uint64_t)age_ns)}};
    sj_jvm_report_stall(&stall);
    (*env)->ReleaseStringUTFChars(env, json, head);
}
