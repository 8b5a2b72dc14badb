/* Leaf probes. In a known JVM, calls of probes from compiled code jump to a stub that records and
 * returns. That avoids the change of the thread's state that a native method costs. If the ring is
 * full, the stub jumps into the native method, where it may wait. */
#ifndef SJ_AGENT_INPROC_JVM_LEAF_H
#define SJ_AGENT_INPROC_JVM_LEAF_H

#include "agent/inproc/jvm/internal.h"

/* True if the JVM is of JDK 17, whose internals are known. Call it from Agent_OnLoad on. */
bool sj_jvm_is_known_version(jvmtiEnv *jvmti);

/* Finds what stubs need of the JVM. Returns false if the JVM is not known. Call it once, after
 * sj_jvm_define_probes. */
bool sj_jvm_leaf_prepare(jvmtiEnv *jvmti, JNIEnv *env, jclass probe_class);

/* JVMTI's CompiledMethodLoad: makes the wrapper of a probe jump to its stub. */
void JNICALL sj_jvm_on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code,
                                jint map_size, const jvmtiAddrLocationMap *map, const void *info);

/* Makes the stubs jump into the wrappers from now on. `is_proved` is true if no thread can reach
 * the stubs any longer. */
void sj_jvm_leaf_close(bool is_proved);

/* Frees the stubs if sj_jvm_leaf_close got true; else their page stays mapped. No thread is in a
 * stub. */
void sj_jvm_leaf_deinit(void);

/* Functions of each processor. */
enum { SJ_LEAF_STUB_BYTES = 128 };

/* Returns the size of the first instruction of a wrapper, or 0 if it cannot be replaced. */
uint32_t sj_arch_leaf_entry_bytes(uint64_t entry);

/* Writes the stub that records `kind` for the wrapper at `entry`. It records nothing of functions
 * that the table at `muted` mutes (muted.h; 0: no table). */
void sj_arch_leaf_emit(uint8_t stub[SJ_LEAF_STUB_BYTES], sj_record_kind kind, uint64_t muted,
                       uint64_t entry);

/* Makes a stub jump into its wrapper, by one store. Threads may be running in it. */
void sj_arch_leaf_close(uint8_t stub[SJ_LEAF_STUB_BYTES]);

/* Replaces the instruction at `entry` by a jump to `stub`, by one store. Returns false if the stub
 * is out of reach. */
bool sj_arch_leaf_patch(uint64_t entry, uint64_t stub);

#endif
