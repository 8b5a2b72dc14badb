/* Design notes
 *
 * A rule is judged when its value is recorded, and acts later in the same entry or exit. Meanwhile
 * its change waits in thread-local memory. The first value of an entry or exit drops older changes,
 * because an exception (Thread.stop) may have ended that entry or exit before its changes were
 * made. */
#include "agent/inproc/jvm/values.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/lines.h"
#include "agent/inproc/jvm/management.h"
#include "agent/inproc/jvm/muted.h"
#include "agent/inproc/jvm/natives.h"
#include "agent/inproc/jvm/own_values.h"
#include "agent/inproc/jvm/virtual_threads.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/values.h"
#include "agent/inproc/recorder/write.h"

#include <string.h>

enum { MAX_SETS = 8 }; /* Limit of one entry or exit. Thread-local memory is scarce. */

/* Waiting changes of the call that this thread enters or leaves. */
typedef struct due_changes {
    sj_due_change sets[MAX_SETS];
    uint32_t set_count;
    bool is_decided; /* True if `decision` replaces the call by a result or an exception. */
    sj_due_change decision;
} due_changes;

static __thread due_changes due_here __attribute__((tls_model("initial-exec")));

/* True if the agent records calls of the function on this thread. A muted function has no entry
 * records, so its values would be assigned to another call. */
static bool records(JNIEnv *env, jint function)
{
    return sj_recorder_is_armed() && !sj_virtual_threads_run_here(env) &&
           !sj_muted_has(&sojourn_agent_state, (uint32_t)function);
}

static void begin(jint what)
{
    if ((what & SJ_JAVA_VALUE_FIRST) != 0) {
        due_here.set_count = 0;
        due_here.is_decided = false;
    }
}

static sj_java_type type_of(jint what)
{
    return (sj_java_type)(what >> SJ_JAVA_VALUE_TYPE_SHIFT & 7);
}

static void judge(uint32_t function, uint8_t descriptor, uint64_t bits)
{
    sj_due_change due;
    if (sj_recorder_changes == NULL || due_here.is_decided ||
        !sj_recorder_judge(function, descriptor, bits, NULL, &due)) {
        return;
    }
    switch (due.action) {
    case SJ_CHANGE_SET:
        if (due_here.set_count < MAX_SETS) {
            due_here.sets[due_here.set_count++] = due;
        }
        break;
    case SJ_CHANGE_RETURN:
    case SJ_CHANGE_THROW:
        due_here.decision = due;
        due_here.is_decided = true;
        break;
    default:
        sj_recorder_change(function, SJ_MANAGED_CALL, &due);
        break;
    }
}

static void JNICALL record_number(JNIEnv *env, jclass class, jlong number, jint what, jint function)
{
    const uint8_t descriptor = (uint8_t)(what & SJ_JAVA_VALUE_DESCRIPTOR);
    const uint32_t kind = sj_value_kind_of(descriptor);
    (void)env;
    (void)class;
    begin(what);
    if (!records(env, function) || due_here.is_decided) {
        return;
    }
    if (kind == SJ_VALUE_OBJECT) {
        sj_value_text text = {0};
        sj_jvm_describe_number(type_of(what), number, &text);
        sj_recorder_text((uint32_t)function, SJ_MANAGED_CALL, descriptor, text.bytes, text.used,
                         text.note);
        return;
    }
    const uint64_t bits = sj_value_narrow(kind, (uint64_t)number);
    sj_recorder_value((uint32_t)function, SJ_MANAGED_CALL, descriptor, bits);
    judge((uint32_t)function, descriptor, bits);
}

/* Records an object by its own class. Records null as a text, because null has no class. */
static void record_own(JNIEnv *env, jobject object, uint32_t position, uint32_t function)
{
    sj_jvm_own_value value;
    if (!sj_jvm_begin_use()) {
        return;
    }
    sj_jvm_own_value_of(env, object, &value);
    sj_jvm_end_use();
    const uint8_t descriptor = sj_value_descriptor(position, value.kind);
    if (sj_value_is_text(value.kind)) {
        sj_recorder_text(function, SJ_MANAGED_CALL, descriptor, value.text.bytes, value.text.used,
                         value.text.note);
    } else {
        sj_recorder_value(function, SJ_MANAGED_CALL, descriptor, value.bits);
    }
}

static void JNICALL record_object(JNIEnv *env, jclass class, jobject object, jint what,
                                  jint function)
{
    const uint8_t descriptor = (uint8_t)(what & SJ_JAVA_VALUE_DESCRIPTOR);
    sj_value_text text = {0};
    bool is_there = true;
    (void)class;
    begin(what);
    if (!records(env, function) || due_here.is_decided) {
        return;
    }
    if ((what & SJ_JAVA_VALUE_OWN) != 0) {
        record_own(env, object, sj_value_position(descriptor), (uint32_t)function);
        return;
    }
    if (!sj_jvm_begin_use()) {
        return;
    }
    if (sj_value_kind_of(descriptor) == SJ_VALUE_STRING) {
        is_there = sj_jvm_describe_string(env, object, &text);
    } else {
        sj_jvm_describe(env, object, &text);
    }
    sj_jvm_end_use();
    if (is_there) {
        sj_recorder_text((uint32_t)function, SJ_MANAGED_CALL, descriptor, text.bytes, text.used,
                         text.note);
    }
}

static void record_thrown_class(JNIEnv *env, jobject exception, uint32_t function)
{
    sj_value_text text = {0};
    sj_jvm_describe_class(env, exception, &text);
    sj_recorder_text(function, SJ_MANAGED_CALL,
                     sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_THROWN), text.bytes, text.used,
                     text.note);
}

static void JNICALL record_thrown(JNIEnv *env, jclass class, jobject exception, jint what,
                                  jint function)
{
    (void)class;
    (void)what;
    if (exception != NULL && records(env, function) && sj_jvm_begin_use()) {
        record_thrown_class(env, exception, (uint32_t)function);
        sj_jvm_end_use();
    }
}

/* Judges the rules that have no condition and name a parameter that the method does not have. */
static void JNICALL judge_absent(JNIEnv *env, jclass class, jint what, jint function)
{
    (void)env;
    (void)class;
    begin(what);
    if (records(env, function)) {
        judge((uint32_t)function, (uint8_t)(what & SJ_JAVA_VALUE_DESCRIPTOR), 0);
    }
}

/* True if the value that a rule sets fits the method's type. Counts a misfit. */
static bool fits(sj_java_type type, const sj_due_change *due)
{
    static const sj_changed_number numbers[] = {
        [SJ_JAVA_WHOLE] = {.bytes = sizeof(jint), .most = UINT32_MAX},
        [SJ_JAVA_BOOLEAN] = {.bytes = sizeof(jboolean), .most = 1},
        [SJ_JAVA_CHARACTER] = {.bytes = sizeof(jchar), .most = UINT16_MAX},
        [SJ_JAVA_FLOAT] = {.is_real = true, .bytes = sizeof(jfloat)},
        [SJ_JAVA_DOUBLE] = {.is_real = true, .bytes = sizeof(jdouble)},
        [SJ_JAVA_LONG] = {.bytes = sizeof(jlong), .most = UINT64_MAX}};
    bool is_fit = true;
    if (type == SJ_JAVA_REFERENCE) {
        is_fit = !sj_value_is_real(sj_value_kind_of(due->target)) && due->bits == 0; /* null */
    } else if (type != SJ_JAVA_VOID) {
        is_fit = sj_recorder_change_fits(due, numbers[type]);
    }
    if (!is_fit) {
        sj_recorder_change_is_unfit(due);
    }
    return is_fit;
}

/* Makes the waiting changes of a number. Returns the bits to flip in the number (xor). The method
 * of an unloaded agent returns 0, so the number stays unchanged. */
static jlong JNICALL set_number(JNIEnv *env, jclass class, jlong number, jint what, jint function)
{
    const uint32_t position = sj_value_position((uint8_t)(what & SJ_JAVA_VALUE_DESCRIPTOR));
    const jlong before = number;
    (void)env;
    (void)class;
    for (uint32_t i = 0; i < due_here.set_count; i++) {
        const sj_due_change *due = &due_here.sets[i];
        if (sj_value_position(due->target) == position && fits(type_of(what), due)) {
            sj_recorder_change((uint32_t)function, SJ_MANAGED_CALL, due);
            number = (jlong)due->bits;
        }
    }
    return number ^ before;
}

static void write_record(sj_record_kind kind, uint32_t function, uint64_t stack)
{
    const uint32_t tag = sj_record_make_tag(kind, function);
    sj_recorder_put(sj_recorder_reserve(tag), sj_arch_ticks(), stack, tag);
}

/* Throws an exception instead of running the call, and records the call. Does nothing if the class
 * does not exist or is not a Throwable. */
static void throw_instead(JNIEnv *env, uint32_t function, const sj_due_change *due)
{
    char name[SJ_CHANGE_THROWN_BYTES];
    if (sj_recorder_changes == NULL) {
        return;
    }
    memcpy(name, sj_recorder_changes->rules[due->rule].thrown, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    const jthrowable exception = sj_jvm_new_exception(env, name);
    if (exception == NULL) {
        return;
    }
    sj_recorder_change(function, SJ_MANAGED_CALL, due);
    write_record(SJ_RECORD_ENTER, function, SJ_MANAGED_CALL);
    record_thrown_class(env, exception, function);
    write_record(SJ_RECORD_LEAVE, function, SJ_MANAGED_THROWN);
    (void)(*env)->Throw(env, exception);
}

static jint JNICALL decide(JNIEnv *env, jclass class, jint what, jint function)
{
    const sj_due_change due = due_here.decision;
    (void)class;
    if (!due_here.is_decided) {
        return 0;
    }
    due_here.is_decided = false;
    if (due.action == SJ_CHANGE_THROW) {
        if (sj_jvm_begin_use()) {
            throw_instead(env, (uint32_t)function, &due);
            sj_jvm_end_use();
        }
        return 0;
    }
    if (!fits(type_of(what), &due)) {
        return 0;
    }
    sj_recorder_skip((uint32_t)function, SJ_MANAGED_CALL, &due);
    return 1;
}

static jlong JNICALL give_result(JNIEnv *env, jclass class, jint what, jint function)
{
    (void)env;
    (void)class;
    (void)what;
    (void)function;
    return (jlong)due_here.decision.bits;
}

static void JNICALL record_cost(JNIEnv *env, jclass class, jint what, jint function)
{
    const bool is_entry = what == SJ_JAVA_AT_ENTRY;
    uint64_t bytes;
    (void)class;
    if (!records(env, function)) {
        return;
    }
    if (sj_jvm_allocated(env, 0, &bytes)) {
        const uint32_t position = sj_cost_reading(SJ_COUNTER_ALLOCATED_BYTES, is_entry);
        sj_recorder_value((uint32_t)function, SJ_MANAGED_CALL,
                          sj_value_descriptor(position, SJ_VALUE_COST), bytes);
    }
    sj_recorder_cpu((uint32_t)function, SJ_MANAGED_CALL, is_entry);
}

static void *const functions[SJ_JAVA_NATIVES] = {[SJ_JAVA_RECORD_NUMBER] = (void *)record_number,
                                                 [SJ_JAVA_RECORD_OBJECT] = (void *)record_object,
                                                 [SJ_JAVA_RECORD_THROWN] = (void *)record_thrown,
                                                 [SJ_JAVA_JUDGE] = (void *)judge_absent,
                                                 [SJ_JAVA_SET] = (void *)set_number,
                                                 [SJ_JAVA_DECIDE] = (void *)decide,
                                                 [SJ_JAVA_RESULT] = (void *)give_result,
                                                 [SJ_JAVA_COST] = (void *)record_cost,
                                                 [SJ_JAVA_LINE] = (void *)sj_jvm_line};

bool sj_jvm_define_values(JNIEnv *env)
{
    sj_jvm_native methods[SJ_JAVA_NATIVES];
    for (uint32_t i = 0; i < SJ_JAVA_NATIVES; i++) {
        methods[i] =
            (sj_jvm_native){sj_java_natives[i].name, sj_java_natives[i].descriptor, functions[i]};
    }
    sj_jvm_find_management(env);
    return sj_jvm_describe_init(env) && sj_jvm_own_values_init(env) &&
           sj_jvm_define_natives(env, SJ_JAVA_VALUES_CLASS, methods, SJ_JAVA_NATIVES,
                                 SJ_JVM_VALUE_NATIVES);
}
