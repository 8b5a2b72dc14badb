/* Defines classes of native methods in the boot loader. The methods are trampolines that stay in
 * the process (hooks/lasting.h). After the agent was unloaded, they return 0. */
#ifndef SJ_AGENT_INPROC_JVM_NATIVES_H
#define SJ_AGENT_INPROC_JVM_NATIVES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"

/* Index of the first trampoline of each class. */
enum {
    SJ_JVM_VALUE_NATIVES = 0,
    SJ_JVM_COMMAND_NATIVES = SJ_JAVA_NATIVES,
    SJ_JVM_COMMANDS = 5,
    SJ_JVM_ON_PAUSE = SJ_JVM_COMMAND_NATIVES + SJ_JVM_COMMANDS, /* JVMTI callbacks of stall.c. */
    SJ_JVM_ON_PAUSE_END = SJ_JVM_ON_PAUSE + 1,
    SJ_JVM_NATIVES_END = SJ_JVM_ON_PAUSE_END + 1
};

typedef struct sj_jvm_native {
    const char *name;
    const char *descriptor;
    void *function;
} sj_jvm_native;

/* Defines the class `name` of static native methods, or finds it if an earlier agent has defined
 * it. Each method calls its function in `methods` through a trampoline; `first` is the index of the
 * first trampoline. Returns false if the JVM refuses. No exception is pending afterwards. */
bool sj_jvm_define_natives(JNIEnv *env, const char *name, const sj_jvm_native *methods,
                           uint32_t count, uint32_t first);

/* Makes the trampoline with this index call `function`, and returns the trampoline's address. Call
 * it after sj_jvm_define_natives. */
void *sj_jvm_lasting_function(uint32_t index, void *function);

/* Makes the trampolines of all native methods return 0 from now on. Threads may be running in them.
 */
void sj_jvm_close_natives(void);

#endif
