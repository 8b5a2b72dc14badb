/* Finds class loaders that the garbage collector frees together with their classes. JVMTI does not
 * report unloaded classes, but it reports freed objects that have a tag. */
#ifndef SJ_AGENT_INPROC_JVM_LOADERS_H
#define SJ_AGENT_INPROC_JVM_LOADERS_H

#include "agent/inproc/jvm/internal.h"

/* Tags a loader whose classes have probes. `number` is the loader's number in sj_jvm_class. Does
 * nothing if `number` is 0, which means that the loader is never freed, or if the loader has a tag
 * already. The agent uses tags of more than 32 bits for other objects. */
void sj_jvm_tag_loader(jobject loader, uint64_t number);

/* Handles JVMTI's ObjectFree: stores the loader's number. Does not call the JVM, which is not
 * allowed here. */
void JNICALL sj_jvm_on_loader_collected(jvmtiEnv *jvmti, jlong number);

/* True if any tagged loader has been freed. */
bool sj_jvm_has_collected_loader(void);

/* Reports the stored numbers to the recorder and removes them. May block. */
void sj_jvm_report_collected_loaders(void);

#endif
