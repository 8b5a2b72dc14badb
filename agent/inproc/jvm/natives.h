/* Classes of native methods that the agent defines in the boot loader. Their methods are lasting
 * trampolines (hooks/lasting.h), which return 0 after the agent was unloaded. */
#ifndef SJ_AGENT_INPROC_JVM_NATIVES_H
#define SJ_AGENT_INPROC_JVM_NATIVES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"

/* Index of the first trampoline of each class. */
enum {
    SJ_JVM_VALUE_NATIVES = 0,
    SJ_JVM_COMMAND_NATIVES = SJ_JAVA_NATIVES,
    SJ_JVM_COMMANDS = 5,
    SJ_JVM_ON_PAUSE = SJ_JVM_COMMAND_NATIVES + SJ_JVM_COMMANDS, /* Events of stall.c. */
    SJ_JVM_ON_PAUSE_END = SJ_JVM_ON_PAUSE + 1,
    SJ_JVM_NATIVES_END = SJ_JVM_ON_PAUSE_END + 1
};

typedef struct sj_jvm_native {
    const char *name;
    const char *descriptor;
    void *function;
} sj_jvm_native;

/* Defines a class of static native methods, or finds that of an earlier agent, and points its
 * methods at `methods`. Returns false if the JVM refuses. No exception is pending afterwards. */
bool sj_jvm_define_natives(JNIEnv *env, const char *name, const sj_jvm_native *methods,
                           uint32_t count, uint32_t first);

/* Points a trampoline at `function` and returns its address. A class must have been defined before.
 */
void *sj_jvm_lasting_function(uint32_t place, void *function);

/* Closes all these trampolines. Threads may be in one. */
void sj_jvm_close_natives(void);

#endif
