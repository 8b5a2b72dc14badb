/* Design notes
 *
 * Hot path: trace_entry and trace_exit replace HotSpot's own functions. They run in Java state,
 * where a thread that waits would delay a safepoint. So they drop and count records if the buffer
 * is full.
 *
 * HotSpot passes the address of the method, to which its jmethodID points. After the garbage
 * collector has freed a loader, a new method may have an old address. So from then on, the methods
 * of each new class are removed from the table unless they are recorded. */
#include "agent/inproc/jvm/tracer.h"

#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/jvm/class_facts.h"
#include "agent/inproc/jvm/key_table.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/jvm/method_list.h"
#include "agent/inproc/jvm/probe_record.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

#define LASTING_MAGIC UINT64_C(0x54004d564a4a53) /* "SJJVM" */

enum { ENTRY = 0, EXIT, FUNCTIONS };

static sj_key_table methods; /* Function ids by method address; 0 if calls are not recorded. */
static sj_hooked_module hooks[FUNCTIONS];
static sj_lasting *lasting;
static bool is_on;

static inline void write_trace_record(sj_record_kind kind, uint64_t method)
{
    const uint32_t function = sj_key_table_get(&methods, method);
    if (function != 0) {
        const uint32_t tag = sj_record_make_tag(kind, function);
        const uint64_t ticks = sj_arch_ticks();
        sj_jvm_put_record(sj_recorder_reserve_at_once(tag), ticks, tag, SJ_MANAGED_CALL);
    }
}

static int trace_entry(const void *thread, uint64_t method)
{
    (void)thread;
    write_trace_record(SJ_RECORD_ENTER, method);
    return 0;
}

static int trace_exit(const void *thread, uint64_t method)
{
    (void)thread;
    write_trace_record(SJ_RECORD_LEAVE, method);
    return 0;
}

static bool redirect_function(uint64_t address, uint32_t place, uint64_t target)
{
    uint8_t code[SJ_RETURN_PATCH_BYTES];
    if (!sj_definition_is_code(address)) {
        return false;
    }
    sj_lasting_open(lasting, place, target);
    memcpy(code, (const void *)(uintptr_t)address, sizeof(code));
    return sj_hooks_redirect(address, code, sizeof(code), sj_lasting_address(lasting, place), false,
                             &hooks[place]) == SJ_OK;
}

bool sj_tracer_start(const char *path, uint64_t bias)
{
    sj_link_tracer_found found;
    if (is_on || !sj_key_table_init(&methods) || !sj_jvm_ask_tracer(path, &found)) {
        return is_on;
    }
    lasting = sj_lasting_new(LASTING_MAGIC, FUNCTIONS);
    is_on = lasting != NULL &&
            redirect_function(bias + found.entry, ENTRY, (uint64_t)(uintptr_t)trace_entry) &&
            redirect_function(bias + found.exit, EXIT, (uint64_t)(uintptr_t)trace_exit);
    if (!is_on) {
        (void)!sj_hooks_unpatch(&hooks[ENTRY]);
        sj_tracer_stop(); /* If a function could not be restored, its trampoline returns at once. */
    }
    return is_on;
}

bool sj_tracer_is_on(void)
{
    return is_on;
}

/* Returns the address of a method: HotSpot's jmethodID points to it. */
static uint64_t address_of(jmethodID method)
{
    return *(const uint64_t *)(const void *)method;
}

static void stop_recording(jmethodID method)
{
    if (sj_key_table_get(&methods, address_of(method)) != 0) {
        (void)sj_key_table_set(&methods, address_of(method), 0);
    }
}

/* Applies the recorder's reply, which has one byte per method; reads it into `memory`. Does not
 * remove a method that is still recorded, even for a moment: a call would lose its entry or exit.
 */
static void apply_reply(const sj_jvm_rewritten *reply, unsigned char *memory, const jmethodID *ids,
                        jint count)
{
    const bool is_read = sj_jvm_read_file(reply->file, memory, reply->size);
    bool is_complete = is_read;
    for (jint i = 0; i < count; i++) {
        if (!is_read || memory[i] == 0) {
            stop_recording(ids[i]);
        } else if (!sj_key_table_set(&methods, address_of(ids[i]),
                                     reply->first_function + (uint32_t)i)) {
            is_complete = false;
        }
    }
    atomic_fetch_add(is_complete ? &sj_jvm.classes : &sj_jvm.unanswered, 1);
}

/* Asks the recorder which methods of a class to record, and applies the reply. Returns false if the
 * recorder selects none or did not reply. */
static bool ask_recorder(jvmtiEnv *jvmti, const sj_jvm_loaded *loaded, sj_jvm_class *class,
                         const jmethodID *ids, jint count)
{
    sj_method_list list = {0};
    sj_jvm_rewritten reply = {.file = -1};
    const bool is_listed =
        sj_method_list_init(jvmti, loaded->name, loaded->name_bytes, ids, count, &list);
    class->listing = SJ_CLASS_TRACED;
    class->bytes = list.bytes;
    class->size = list.used;
    if (!is_listed || !sj_jvm_rewrite_class(class, &reply)) {
        atomic_fetch_add(&sj_jvm.unanswered, 1);
    }
    const bool is_wanted = reply.size != 0 && reply.size == (uint32_t)count;
    if (is_wanted) {
        apply_reply(&reply, list.bytes, ids, count);
    }
    if (reply.size != 0) {
        (void)sj_sys_close(reply.file);
    }
    sj_method_list_deinit(jvmti, &list);
    return is_wanted;
}

/* If the policy chooses classes by their ancestors, sends the ancestors. The recorder needs them
 * before the methods. */
static void send_lineage(const sj_jvm_loaded *loaded)
{
    uint8_t is_other = 0;
    if (sj_class_is_by_lineage()) {
        (void)sj_jvm_choose_classes(loaded, 1, &is_other);
    }
}

static void tag_loader(jvmtiEnv *jvmti, JNIEnv *env, jclass class, uint64_t number)
{
    jobject loader = NULL;
    if ((*jvmti)->GetClassLoader(jvmti, class, &loader) == JVMTI_ERROR_NONE && loader != NULL) {
        sj_jvm_tag_loader(loader, number);
        (*env)->DeleteLocalRef(env, loader);
    }
}

void sj_tracer_add_class(jvmtiEnv *jvmti, JNIEnv *env, jclass class)
{
    sj_class_facts facts;
    sj_jvm_loaded loaded;
    jmethodID *ids = NULL;
    jint count = 0;
    const bool is_asked_for = sj_class_facts_read(jvmti, env, class, &facts, &loaded);
    if ((is_asked_for || sj_jvm_has_collected_loader()) &&
        (*jvmti)->GetClassMethods(jvmti, class, &count, &ids) == JVMTI_ERROR_NONE) {
        bool is_wanted = false;
        if (is_asked_for && sj_recorder_is_armed() && sj_recorder_may_call()) {
            sj_jvm_report_collected_loaders();
            send_lineage(&loaded);
            tag_loader(jvmti, env, class, facts.origin.loader);
            is_wanted = ask_recorder(jvmti, &loaded, &facts.origin, ids, count);
        }
        for (jint i = 0; i < count && !is_wanted; i++) {
            stop_recording(ids[i]);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
    }
    sj_class_facts_free(jvmti, &facts);
}

void sj_tracer_add_all(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures)
{
    jint count = 0;
    jclass *classes = NULL;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        if (sj_class_is_prepared(jvmti, classes[i])) {
            sj_tracer_add_class(jvmti, env, classes[i]);
            figures->examined++;
        }
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

void sj_tracer_stop(void)
{
    /* HotSpot's functions still jump to the trampolines. */
    if (lasting != NULL) {
        sj_lasting_close(lasting, FUNCTIONS);
    }
    is_on = false;
}

void sj_tracer_deinit(void)
{
    /* If tracing was on until now, a thread may be between a trampoline and the table. */
    const bool was_stopped = !is_on;
    sj_tracer_stop();
    if (was_stopped) {
        sj_key_table_deinit(&methods);
    }
}
