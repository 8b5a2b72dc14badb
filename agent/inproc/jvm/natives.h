/* Classes of native methods that the agent defines in the boot loader. Their methods are lasting
 * trampolines (hooks/lasting.h): when the agent has left, they return 0. */
#ifndef SJ_AGENT_INPROC_JVM_NATIVES_H
#define SJ_AGENT_INPROC_JVM_NATIVES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"

/* Where the trampolines of a class begin. */
enum {
    SJ_JVM_VALUE_NATIVES = 0,
    SJ_JVM_COMMAND_NATIVES = SJ_JAVA_NATIVES,
    SJ_JVM_COMMANDS = 5,
    SJ_JVM_ON_PAUSE = SJ_JVM_COMMAND_NATIVES + SJ_JVM_COMMANDS, /* events of stall.c */
    SJ_JVM_ON_PAUSE_END = SJ_JVM_ON_PAUSE + 1,
    SJ_JVM_NATIVES_END = SJ_JVM_ON_PAUSE_END + 1
};

typedef struct sj_jvm_native {
    const char *name;
    const char *descriptor;
    void *function;
} sj_jvm_native;

/* sj_jvm_define_natives defines a class of static methods, or finds that of an earlier agent, and
 * leads its methods to `methods`. False: the JVM refused. No exception is pending afterwards. */
bool sj_jvm_define_natives(JNIEnv *env, const char *name, const sj_jvm_native *methods,
                           uint32_t count, uint32_t first);

/* sj_jvm_lasting_function gives the trampoline that leads to `function`, once a class was defined.
 */
void *sj_jvm_lasting_function(uint32_t place, void *function);

/* sj_jvm_close_natives ends the work of all of them. Any thread may be in one. */
void sj_jvm_close_natives(void);

#endif
