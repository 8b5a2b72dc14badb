/* Design notes
 *
 * The JDK's native library defines each hidden class by calling JVM_LookupDefineClass through an
 * import slot. The agent overwrites this slot with the address of define_hidden.
 *
 * The JVM cannot transform a hidden class, so its probes stay for ever. After the agent is
 * unloaded, these probes return at once. A later agent mutes the function ids of these probes. Its
 * recorder gives these ids to no other functions. */
#include "agent/inproc/jvm/hidden.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/jvm/hidden_before.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { HIDDEN = 2 /* HotSpot's flag for a hidden class, in `flags` */ };

typedef jclass (*define_class)(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                               jsize size, jobject domain, jboolean initialize, jint flags,
                               jobject data);

static _Atomic uint64_t real_define;
static _Atomic uint32_t first_unused;

/* The bytes of a class with probes. `bytes` is NULL if the class gets no probes. */
typedef struct hidden_class {
    void *bytes;
    uint32_t size;
} hidden_class;

static void keep_number(uint32_t end)
{
    uint32_t known = atomic_load(&first_unused);
    while (known < end && !atomic_compare_exchange_weak(&first_unused, &known, end)) {
    }
}

static void read_class(const sj_jvm_rewritten *reply, hidden_class *probed)
{
    void *bytes = sj_sys_allocate(reply->size);
    if (bytes != NULL && sj_jvm_read_file(reply->file, bytes, reply->size)) {
        *probed = (hidden_class){.bytes = bytes, .size = reply->size};
        keep_number(reply->first_function + reply->function_count);
        atomic_fetch_add(&sj_jvm.classes, 1);
    } else if (bytes != NULL) {
        (void)sj_sys_unmap(bytes, reply->size);
    }
    (void)sj_sys_close(reply->file);
}

static void ask_recorder(jobject loader, const char *name, sj_jvm_class *class,
                         hidden_class *probed)
{
    sj_jvm_rewritten reply = {.file = -1, .selection = SJ_CLASS_NOTHING};
    if (!sj_jvm_is_asked_for(name, loader, class)) {
        return;
    }
    sj_jvm_report_collected_loaders();
    if (!sj_jvm_rewrite_class(class, &reply)) {
        atomic_fetch_add(&sj_jvm.unanswered, 1);
    } else if (reply.size != 0) {
        read_class(&reply, probed);
        sj_jvm_tag_loader(loader, class->loader);
    }
}

/* Asks the recorder to rewrite the bytes of a hidden class. The recorder selects the class by the
 * name of its host class. Leaves `*probed` unchanged if the class gets no probes. */
static void rewrite(JNIEnv *env, jclass host, const char *name, sj_jvm_class *class,
                    hidden_class *probed)
{
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    jobject loader = NULL;
    char *signature = NULL;
    if ((*jvmti)->GetClassLoader(jvmti, host, &loader) != JVMTI_ERROR_NONE) {
        return;
    }
    sj_jvm_identify(env, loader, class);
    if ((*jvmti)->GetClassSignature(jvmti, host, &signature, NULL) == JVMTI_ERROR_NONE) {
        const size_t bytes = strlen(signature); /* such as "Lcom/acme/Host;" */
        if (bytes > 2 && bytes - 2 <= SJ_LINK_CLASS_NAME_BYTES) {
            class->host = signature + 1;
            class->host_bytes = (uint32_t)bytes - 2;
            ask_recorder(loader, name, class, probed);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    (*env)->DeleteLocalRef(env, loader);
}

static jclass define_counted(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                             jsize size, jobject domain, jboolean initialize, jint flags,
                             jobject data)
{
    const define_class define = (define_class)(uintptr_t)atomic_load(&real_define);
    hidden_class probed = {0};
    const bool is_asked_for = (flags & HIDDEN) != 0 && name != NULL && !sj_hidden_is_lambda(name) &&
                              bytes != NULL && size > 0 && sj_recorder_is_armed() &&
                              sj_recorder_may_call();
    if (is_asked_for && sj_jvm_begin_use()) {
        sj_jvm_class class = {.bytes = bytes, .size = (uint32_t)size};
        rewrite(env, host, name, &class, &probed);
        sj_jvm_end_use();
    }
    if (probed.bytes == NULL) {
        const jclass plain = define(env, host, name, bytes, size, domain, initialize, flags, data);
        if (is_asked_for && plain != NULL && sj_jvm_begin_use()) {
            sj_hidden_before_add(sj_jvm.jvmti, plain);
            sj_jvm_end_use();
        }
        return plain;
    }
    const jclass defined =
        define(env, host, name, probed.bytes, (jsize)probed.size, domain, initialize, flags, data);
    (void)sj_sys_unmap(probed.bytes, probed.size);
    return defined;
}

/* Replaces JVM_LookupDefineClass. Counts the calling thread in calling_out while the JVM defines
 * the class. The JVM may run the initialiser of the class, which is Java code of unlimited
 * duration. Detaching needs this count, because it cannot unwind frames of the JVM. */
static jclass define_hidden(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                            jsize size, jobject domain, jboolean initialize, jint flags,
                            jobject data)
{
    atomic_fetch_add(&sojourn_agent_state.calling_out, 1);
    const jclass defined =
        define_counted(env, host, name, bytes, size, domain, initialize, flags, data);
    atomic_fetch_sub(&sojourn_agent_state.calling_out, 1);
    return defined;
}

static void rebind(bool restore)
{
    const sj_rebinding rebinding = {.name = "JVM_LookupDefineClass",
                                    .real = atomic_load(&real_define),
                                    .replacement = (uint64_t)(uintptr_t)define_hidden};
    (void)sj_rebind(&rebinding, 1, restore);
}

void sj_hidden_start(void)
{
    const uint64_t found = sj_rebind_find("JVM_LookupDefineClass");
    if (found != 0) {
        atomic_store(&real_define, found);
        rebind(false);
    }
}

uint32_t sj_hidden_stop(void)
{
    if (atomic_load(&real_define) != 0) {
        rebind(true);
    }
    return atomic_load(&first_unused);
}
