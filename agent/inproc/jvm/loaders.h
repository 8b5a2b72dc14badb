/* Class loaders that are collected together with their classes. The JVM does not report unloaded
 * classes, but it reports collected objects that have a tag. */
#ifndef SJ_AGENT_INPROC_JVM_LOADERS_H
#define SJ_AGENT_INPROC_JVM_LOADERS_H

#include "agent/inproc/jvm/internal.h"

/* Tags a loader whose classes have probes. `number` is that of sj_jvm_class; 0: the loader lasts,
 * and gets no tag. Tags beyond 32 bits belong to other objects. */
void sj_jvm_tag_loader(jobject loader, uint64_t number);

/* JVMTI's ObjectFree: notes the loader. The calling thread must not use the JVM. */
void JNICALL sj_jvm_on_loader_collected(jvmtiEnv *jvmti, jlong number);

/* True if a loader was collected so far. */
bool sj_jvm_has_collected_loader(void);

/* Reports the noted loaders to the recorder. May wait. */
void sj_jvm_report_collected_loaders(void);

#endif
