/* The JVM from inside: records Java methods by probes in their class files.
 *
 * A JVM that is about to be created gets one option more, which names this agent as its JVMTI
 * agent. The JVM shows it the bytes of each class that is defined from then on. The recorder, in
 * another process, puts probes in, and the JVM defines and verifies the result. If the recorder
 * does not reply, the class stays as it is. Probes are native methods of java.sojourn.Probe, a
 * class of the boot loader. A running JVM is joined by a thread of the agent, and its loaded
 * classes are transformed again. */
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
    SJ_JVM_ATTACH = 0, /* Gives probes to its classes, and to those that it defines later. */
    SJ_JVM_SELECT,     /* Transforms the classes whose probes differ under another policy. */
    SJ_JVM_DETACH      /* Removes all probes and everything else that the JVM knows of us. */
} sj_jvm_task;

/* Enables the probes and waits for a JVM. Call it before a JVM is created. `runtimes`:
 * sj_link_runtime bits of the policy. One thread at a time. */
void sj_jvm_start(uint32_t runtimes);

/* Sets the policy's bits for a running JVM. Call it before sj_jvm_start_task. */
void sj_jvm_set_runtimes(uint32_t runtimes);

/* Patches JNI_CreateJavaVM, if the process has it, so that its next call comes to us. Call it after
 * modules were loaded, under the loader's lock. */
void sj_jvm_watch_for_launch(void);

/* Starts a task in a thread of its own. The `jvm` field of the agent's state says when it is done.
 * Any thread of the JVM, in any state, may call this. If a task is running already, or if no thread
 * can be started, nothing is done. */
void sj_jvm_start_task(sj_jvm_task task);

/* Marks the JVM as gone: a forked child has none of its threads. */
void sj_jvm_after_fork(void);

/* Frees what probes used. Call it after SJ_JVM_DETACH, when no thread is in the agent or in its
 * stubs. */
void sj_jvm_deinit(void);

#endif
