/* Loaders that go, and their classes with them: the JVM tells of no class that is unloaded, but of
 * objects that have a tag. */
#ifndef SJ_AGENT_INPROC_JVM_LOADERS_H
#define SJ_AGENT_INPROC_JVM_LOADERS_H

#include "agent/inproc/jvm/internal.h"

/* sj_jvm_follow_loader: a loader has classes with probes; `number` as in sj_jvm_class, 0: one that
 * lasts. It becomes the loader's tag; tags beyond 32 bits are for other objects. */
void sj_jvm_follow_loader(jobject loader, uint64_t number);

/* sj_jvm_on_loader_gone is JVMTI's ObjectFree: notes it, in a thread that must not use the JVM. */
void JNICALL sj_jvm_on_loader_gone(jvmtiEnv *jvmti, jlong number);

/* sj_jvm_has_gone_loader returns whether any of them has gone so far. */
bool sj_jvm_has_gone_loader(void);

/* sj_jvm_report_gone_loaders reports to the recorder what was noted. May wait. */
void sj_jvm_report_gone_loaders(void);

#endif
