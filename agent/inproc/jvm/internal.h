/* What the files of the JVM's room share. */
#ifndef SJ_AGENT_INPROC_JVM_INTERNAL_H
#define SJ_AGENT_INPROC_JVM_INTERNAL_H

#include "agent/inproc/jvm/jvm.h"

#include "agent/abi/record.h"
#include "agent/inproc/hooks/lasting.h"

#include <jvmti.h>
#include <stdatomic.h>

#define SJ_JVM_PROBE_CLASS "java/sojourn/Probe"

typedef struct sj_jvm_state {
    sj_jvm_options options;
    jvmtiEnv *jvmti;            /* NULL: no JVM has loaded us */
    jobject app_loader;         /* global references; NULL: unknown */
    jobject platform_loader;    /* likewise */
    bool is_traced;             /* by its own tracing functions, also when the agent has left it */
    _Atomic uint32_t is_loaded; /* 1: a JVM has called us */
    _Atomic uint32_t enabled;   /* 1: classes are asked for */
    _Atomic uint32_t asking;    /* threads that show us a class, or use what leaving takes away */
    _Atomic uint32_t classes;
    _Atomic uint32_t unanswered;
    _Atomic uint32_t led;
    _Atomic uint32_t unled;
    _Atomic uint32_t is_unknown;
    uint32_t least_function; /* see sj_jvm_least_function */
} sj_jvm_state;

extern sj_jvm_state sj_jvm __attribute__((visibility("hidden")));

/* sj_jvm_begin_use returns whether the JVM's environment and references may be used until
 * sj_jvm_end_use; false: the agent leaves them. Any thread. */
static inline bool sj_jvm_begin_use(void)
{
    atomic_fetch_add(&sj_jvm.asking, 1);
    if (atomic_load(&sj_jvm.enabled) != 0) {
        return true;
    }
    atomic_fetch_sub(&sj_jvm.asking, 1);
    return false;
}

static inline void sj_jvm_end_use(void)
{
    atomic_fetch_sub(&sj_jvm.asking, 1);
}

/* Addresses that the JVM keeps, or may be about to call when the agent leaves: trampolines of
 * hooks/lasting.h. The last three are never led anywhere. */
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
    SJ_JVM_ON_LOADER_GONE,
    SJ_JVM_CLOSED_ENTER,
    SJ_JVM_CLOSED_LEAVE,
    SJ_JVM_CLOSED_UNWIND,
    SJ_JVM_ENTRIES
} sj_jvm_entry;

/* sj_jvm_set_callbacks has a JVMTI environment call the agent, or with `lasting` trampolines that
 * lead to it. */
bool sj_jvm_set_callbacks(jvmtiEnv *jvmti, sj_lasting *lasting);

/* sj_jvm_get_capabilities asks for what the agent uses to rewrite classes. */
bool sj_jvm_get_capabilities(jvmtiEnv *jvmti);

void sj_jvm_enable(jvmtiEnv *jvmti, jvmtiEvent event);

/* sj_jvm_on_class is JVMTI's ClassFileLoadHook. */
void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes);

/* sj_jvm_follow_lineage has classes that are ready looked at where they are chosen by what they
 * descend from: when they are defined that is not known. */
void sj_jvm_follow_lineage(jvmtiEnv *jvmti);

/* sj_jvm_identify fills in which loader a class has. */
void sj_jvm_identify(JNIEnv *env, jobject loader, sj_jvm_class *class);

/* sj_jvm_class_key is the key of a class in class_marks.h. */
uint64_t sj_jvm_class_key(const char *name, size_t bytes, uint64_t loader, bool is_system);

/* sj_jvm_is_asked_for decides on a class by its name and loader, before the recorder is asked. */
bool sj_jvm_is_asked_for(const char *name, jobject loader, const sj_jvm_class *class);

/* sj_jvm_read_file reads the first bytes of a file; false: not all of them. */
bool sj_jvm_read_file(int file, unsigned char *bytes, uint32_t size);

/* sj_jvm_define_probes defines the class of the probes, or finds that of an earlier agent, and
 * returns a local reference. NULL: the JVM refused. No exception is pending afterwards. */
jclass sj_jvm_define_probes(JNIEnv *env);

/* sj_jvm_lead_probes makes the native methods of that class the agent's, or with `lasting` its
 * trampolines from `first` on. No exception is pending afterwards. */
bool sj_jvm_lead_probes(JNIEnv *env, jclass probe_class, sj_lasting *lasting, uint32_t first);

/* sj_jvm_probe_address is the agent's own function of a probe: SJ_JVM_ENTER and the next two. */
uint64_t sj_jvm_probe_address(uint32_t probe);

/* sj_jvm_find_loaders makes references to the loaders of the program's and of the platform's
 * classes. No exception is pending afterwards. */
void sj_jvm_find_loaders(JNIEnv *env);

extern const uint8_t sj_jvm_probe_class[];
extern const uint32_t sj_jvm_probe_class_bytes;

#endif
