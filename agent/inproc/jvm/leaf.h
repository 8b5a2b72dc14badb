/* Leaf probes: the faster way from JIT-compiled code to a probe, in JVMs of known versions. The
 * compiled wrapper of the probe's native method jumps to a stub that records and returns. The stub
 * is faster because it does not change the thread's state, as a native call does. If the buffer is
 * full, the stub jumps to the native method, which may wait. */
#ifndef SJ_AGENT_INPROC_JVM_LEAF_H
#define SJ_AGENT_INPROC_JVM_LEAF_H

#include "agent/inproc/jvm/internal.h"

/* True if the JVM is of JDK 17, whose internals are known. May be called in Agent_OnLoad or later.
 */
bool sj_jvm_is_known_version(jvmtiEnv *jvmti);

/* Finds the JVM's internals that stubs need. Returns false if they are not known. Call it once,
 * after sj_jvm_define_probes. */
bool sj_jvm_leaf_prepare(jvmtiEnv *jvmti, JNIEnv *env, jclass probe_class);

/* Handles JVMTI's CompiledMethodLoad: if `method` is a probe, makes its wrapper jump to the stub.
 */
void JNICALL sj_jvm_on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code,
                                jint map_size, const jvmtiAddrLocationMap *map, const void *info);

/* Makes the stubs jump to the wrappers without recording. `is_proved` is true if it is certain that
 * no thread can reach the stubs now. */
void sj_jvm_leaf_close(bool is_proved);

/* Unmaps the stubs if `is_proved` of the last sj_jvm_leaf_close was true; else they stay mapped. No
 * thread may be in a stub. */
void sj_jvm_leaf_deinit(void);

/* The rest is implemented in arch/<machine>. */
enum { SJ_LEAF_STUB_BYTES = 128 };

/* Returns the size of the first instruction of a wrapper in bytes, or 0 if it cannot be replaced.
 */
uint32_t sj_arch_leaf_entry_bytes(uint64_t entry);

/* Writes the stub that records `kind` for the wrapper at `entry`. The stub does not record calls of
 * functions that the table at `muted` (muted.h) mutes; `muted` is 0 if there is no table. */
void sj_arch_leaf_emit(uint8_t stub[SJ_LEAF_STUB_BYTES], sj_record_kind kind, uint64_t muted,
                       uint64_t entry);

/* Makes a stub jump to its wrapper, by one store. Threads may be running in the stub. */
void sj_arch_leaf_close(uint8_t stub[SJ_LEAF_STUB_BYTES]);

/* Replaces the instruction at `entry` by a jump to `stub`, by one store. Returns false if the stub
 * is out of reach. */
bool sj_arch_leaf_patch(uint64_t entry, uint64_t stub);

#endif
