/* Internal header of jvm; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_JVM_INTERNAL_H
#define SJ_AGENT_INPROC_JVM_INTERNAL_H

#include "agent/inproc/jvm/jvm.h"

#include "agent/abi/agent_state.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/lasting.h"
#include "agent/inproc/jvm/questions.h"

#include <jvmti.h>
#include <stdatomic.h>

#define SJ_JVM_PROBE_CLASS "java/sojourn/Probe"

typedef struct sj_jvm_state {
    uint32_t runtimes;  /* sj_link_runtime bits of the policy. */
    bool is_wanted;     /* True if a policy has asked for Java methods. */
    jvmtiEnv *jvmti;    /* NULL: no JVM has loaded us. */
    jobject app_loader; /* Global references; NULL: unknown. */
    jobject platform_loader;
    /* True if the JVM's own tracing functions record, or did before the agent left it. */
    bool is_traced;
    _Atomic uint32_t is_loaded; /* 1: a JVM has called us. */
    _Atomic uint32_t enabled;   /* 1: the recorder is asked about classes. */
    /* How many threads show us a class, or use references that a detach frees. */
    _Atomic uint32_t users;
    _Atomic uint32_t classes;
    _Atomic uint32_t unanswered;
    _Atomic uint32_t linked_wrappers;
    _Atomic uint32_t plain_wrappers;
    _Atomic uint32_t is_unknown;
    /* First function id of this recording. Smaller ids belong to an earlier one, whose hidden
     * classes keep their probes. */
    uint32_t least_function;
} sj_jvm_state;

extern sj_jvm_state sj_jvm __attribute__((visibility("hidden")));

/* True if the JVM's environment and references may be used until sj_jvm_end_use. False if the agent
 * is leaving them. Thread-safe. */
static inline bool sj_jvm_begin_use(void)
{
    atomic_fetch_add(&sj_jvm.users, 1);
    if (atomic_load(&sj_jvm.enabled) != 0) {
        return true;
    }
    atomic_fetch_sub(&sj_jvm.users, 1);
    return false;
}

static inline void sj_jvm_end_use(void)
{
    atomic_fetch_sub(&sj_jvm.users, 1);
}

/* Addresses that the JVM keeps, or may be about to call when the agent is unloaded: trampolines of
 * hooks/lasting.h. The last three never lead to a function. */
typedef enum sj_jvm_entry {
    SJ_JVM_ENTER = 0,
    SJ_JVM_LEAVE_METHOD,
    SJ_JVM_UNWIND,
    SJ_JVM_ON_CLASS,
    SJ_JVM_ON_COMPILED,
    SJ_JVM_ON_PREPARE,
    SJ_JVM_ON_DEATH,
    SJ_JVM_ON_THREAD_START,
    SJ_JVM_ON_THREAD_END,
    SJ_JVM_ON_LOADER_COLLECTED,
    SJ_JVM_CLOSED_ENTER,
    SJ_JVM_CLOSED_LEAVE,
    SJ_JVM_CLOSED_UNWIND,
    SJ_JVM_ENTRIES
} sj_jvm_entry;

/* Sets the callbacks of a JVMTI environment. With `lasting` they are trampolines to the agent's
 * functions. */
bool sj_jvm_set_callbacks(jvmtiEnv *jvmti, sj_lasting *lasting);

/* Asks for the capabilities that rewriting classes needs. Returns false if the JVM refuses. */
bool sj_jvm_get_capabilities(jvmtiEnv *jvmti);

void sj_jvm_enable(jvmtiEnv *jvmti, jvmtiEvent event);

/* JVMTI's ClassFileLoadHook. */
void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes);

/* Enables ClassPrepare if the policy chooses classes by their ancestors, which are not known when a
 * class is defined. */
void sj_jvm_enable_lineage(jvmtiEnv *jvmti);

/* Fills in the loader of a class. */
void sj_jvm_identify(JNIEnv *env, jobject loader, sj_jvm_class *class);

/* Returns the key of a class for class_marks.h. */
uint64_t sj_jvm_class_key(const char *name, size_t bytes, uint64_t loader, bool is_system);

/* True if the recorder is to be asked about a class of this name and loader. */
bool sj_jvm_is_asked_for(const char *name, jobject loader, const sj_jvm_class *class);

/* Reads the first `size` bytes of a file. Returns false if they cannot all be read. */
bool sj_jvm_read_file(int file, unsigned char *bytes, uint32_t size);

/* Defines the class of the probes, or finds that of an earlier agent. Returns a local reference, or
 * NULL if the JVM refuses. No exception is pending afterwards. */
jclass sj_jvm_define_probes(JNIEnv *env);

/* Registers the agent's functions as the native methods of that class. With `lasting` they are its
 * trampolines from `first` on. Returns false if the JVM refuses. No exception is pending
 * afterwards. */
bool sj_jvm_register_probes(JNIEnv *env, jclass probe_class, sj_lasting *lasting, uint32_t first);

/* Returns the agent's own function of a probe, SJ_JVM_ENTER and the next two. */
uint64_t sj_jvm_probe_address(uint32_t probe);

/* Creates references to the loaders of the program's and of the platform's classes. No exception is
 * pending afterwards. */
void sj_jvm_find_loaders(JNIEnv *env);

extern const uint8_t sj_jvm_probe_class[];
extern const uint32_t sj_jvm_probe_class_bytes;

#endif
