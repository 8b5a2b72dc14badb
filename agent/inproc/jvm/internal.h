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
    jvmtiEnv *jvmti;    /* NULL if the agent is not in a JVM. */
    jobject app_loader; /* Global references to the loaders; NULL if not known. */
    jobject platform_loader;
    /* True if the agent records through the JVM's tracing functions (tracer.h), or did so until it
     * left the JVM. */
    bool is_traced;
    _Atomic uint32_t is_loaded; /* 1 if a JVM has called Agent_OnLoad. */
    _Atomic uint32_t enabled;   /* 1 if the agent asks the recorder about classes. */
    /* Number of threads in ClassFileLoadHook, or that use references that a detach frees. */
    _Atomic uint32_t users;
    /* Counters that sj_jvm_report sends to the recorder. */
    _Atomic uint32_t classes;
    _Atomic uint32_t unanswered;
    _Atomic uint32_t linked_wrappers;
    _Atomic uint32_t plain_wrappers;
    /* 1 if the JVM's internals are not known. The wrappers of probes then do not jump to stubs
     * (leaf.h). */
    _Atomic uint32_t is_unknown;
    /* First function id of this recording. Smaller ids belong to earlier recordings, whose hidden
     * classes keep their probes. */
    uint32_t least_function;
} sj_jvm_state;

extern sj_jvm_state sj_jvm __attribute__((visibility("hidden")));

/* Returns true if the calling thread may use the JVM's environment and references; call
 * sj_jvm_end_use then. Returns false if the agent is leaving the JVM. Thread-safe. */
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

/* Trampolines (hooks/lasting.h) for functions whose addresses the JVM stores, or may call while the
 * agent is being unloaded. The three CLOSED trampolines always return 0. */
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

/* Sets the callbacks of a JVMTI environment. If `lasting` is not NULL, they are its trampolines to
 * the agent's functions. Returns false if the JVM refuses. */
bool sj_jvm_set_callbacks(jvmtiEnv *jvmti, sj_lasting *lasting);

/* Requests the capabilities to rewrite classes, to tag objects, and to get the events of compiled
 * methods and freed objects. Returns false if the JVM refuses. */
bool sj_jvm_get_capabilities(jvmtiEnv *jvmti);

/* Enables an event for all threads. */
void sj_jvm_enable(jvmtiEnv *jvmti, jvmtiEvent event);

/* Handles JVMTI's ClassFileLoadHook: asks the recorder for the class with probes. */
void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes);

/* Enables ClassPrepare if the policy chooses classes by their ancestors, which are not known when a
 * class is defined. Disables it otherwise. */
void sj_jvm_enable_lineage(jvmtiEnv *jvmti);

/* Writes the loader's number and name, and whether it loads system classes. */
void sj_jvm_identify(JNIEnv *env, jobject loader, sj_jvm_class *class);

/* Returns the key of a class for class_marks.h. */
uint64_t sj_jvm_class_key(const char *name, size_t bytes, uint64_t loader, bool is_system);

/* True if the agent has to ask the recorder about a class with this name and loader. */
bool sj_jvm_is_asked_for(const char *name, jobject loader, const sj_jvm_class *class);

/* Reads the first `size` bytes of an open file. Returns false if it cannot read all of them. */
bool sj_jvm_read_file(int file, unsigned char *bytes, uint32_t size);

/* Defines java.sojourn.Probe, or finds the class that an earlier agent defined. Returns a local
 * reference, or NULL if the JVM refuses. No exception is pending afterwards. */
jclass sj_jvm_define_probes(JNIEnv *env);

/* Registers the native methods of java.sojourn.Probe. They are the agent's functions or, if
 * `lasting` is not NULL, its three trampolines from `first` on. Returns false if the JVM refuses.
 * No exception is pending afterwards. */
bool sj_jvm_register_probes(JNIEnv *env, jclass probe_class, sj_lasting *lasting, uint32_t first);

/* Returns the address of the agent's function for a probe: SJ_JVM_ENTER, SJ_JVM_LEAVE_METHOD or
 * SJ_JVM_UNWIND. */
uint64_t sj_jvm_probe_address(uint32_t probe);

/* Sets app_loader and platform_loader of sj_jvm. No exception is pending afterwards. */
void sj_jvm_find_loaders(JNIEnv *env);

extern const uint8_t sj_jvm_probe_class[];
extern const uint32_t sj_jvm_probe_class_bytes;

#endif
