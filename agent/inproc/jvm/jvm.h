/* Records Java methods inside a JVM, by probes in their class files.
 *
 * A JVM that the program creates gets an additional option, which names this agent as a JVMTI
 * agent. The JVM then shows the agent the bytes of each class that it defines. The agent sends them
 * to the recorder, another process, which adds probes; the JVM verifies and defines the result. If
 * the recorder does not reply, the class does not change. A probe is a call of a native method of
 * java.sojourn.Probe, a class of the boot loader.
 *
 * In a JVM that runs already, a thread of the agent attaches itself to the JVM and retransforms its
 * loaded classes. */
#ifndef SJ_AGENT_INPROC_JVM_JVM_H
#define SJ_AGENT_INPROC_JVM_JVM_H

#include "agent/abi/agent_state.h"
#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tasks in a running JVM. */
typedef enum sj_jvm_task {
    SJ_JVM_ATTACH = 0, /* Adds probes to loaded classes, and to classes that are loaded later. */
    SJ_JVM_SELECT,     /* Retransforms the classes whose probes change under a new policy. */
    SJ_JVM_DETACH      /* Removes all probes, callbacks and references from the JVM. */
} sj_jvm_task;

/* Enables recording in a JVM that the program creates later. Does not block. `runtimes` are the
 * sj_link_runtime bits of the policy. Not thread-safe. */
void sj_jvm_start(uint32_t runtimes);

/* Sets the policy's bits for a running JVM. Call it before sj_jvm_start_task. */
void sj_jvm_set_runtimes(uint32_t runtimes);

/* If the process has JNI_CreateJavaVM, patches it so that its next call adds the agent's option.
 * Call it after modules were loaded. The caller holds the loader's lock. */
void sj_jvm_watch_for_launch(void);

/* Starts a task in a new thread. The `jvm` field of the agent's state shows when the task is done.
 * Any thread of the JVM, in any state, may call this. Does nothing in three cases: a task is
 * running, no policy has asked for Java methods, or the thread cannot be started. */
void sj_jvm_start_task(sj_jvm_task task);

/* Makes the agent leave the JVM alone in a forked child, because the child has no threads of the
 * JVM. Call it in each forked child. */
void sj_jvm_after_fork(void);

/* Frees the memory that probes used. Call it after SJ_JVM_DETACH, when no thread is in the agent or
 * in its stubs. */
void sj_jvm_deinit(void);

#endif
