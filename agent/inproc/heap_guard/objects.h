/* Functions of the heap monitor that monitors of objects (agent/inproc/objc_zombies) also use:
 * reports, stack copies, patterns of class names. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H
#define SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

/* The memory shared with the recorder. NULL if uses are not reported. */
extern sj_zombie_region *_Atomic sj_zombie_region_now;

/* Counts a use and claims an unused report. `site` is the address of the faulty code. Returns NULL
 * if the limit per minute or per site is reached, or if no report is unused. The caller writes
 * everything except the use, and then calls sj_report_finish. Async-signal-safe. */
sj_zombie_report *sj_report_begin(uint64_t site, sj_zombie_kind kind);

/* Writes the use into the report, copies its stack, and publishes the report. `use` has the
 * registers. Async-signal-safe. */
void sj_report_finish(sj_zombie_report *report, const sj_zombie_trace *use);

/* Sends SIGABRT to the calling thread. */
void sj_report_stop(void);

/* Copies at most `bytes` of the stack of a trace, from its stack pointer up, and sets its
 * `stack_bytes`. Replaces return addresses that the agent has changed by the original ones. Leaves
 * out bytes that cannot be read. */
void sj_trace_stack(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* Returns the thread id of the calling thread. Asks the kernel only at the first call.
 * Returns 0 if the kernel must not be asked. */
uint32_t sj_thread_number(void);

/* Makes sj_thread_number ask the kernel again. */
void sj_thread_after_fork(void);

/* Like sj_trace_stack for the calling thread, in most cases without a system call. */
void sj_stack_copy_own(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* True if the bytes certainly lie on the calling thread's stack, above the stack pointer, so that
 * they can be read. */
bool sj_stack_has(uint64_t address, uint64_t bytes);

/* If `is_wanted`, guards every allocation of the calling thread until a call with false. */
void sj_guard_next_allocations(bool is_wanted);

/* Stores which object lies in a guarded block. The caller never frees `class_name`. When the
 * program frees the block, the object gets the class `freed_class`, by which later messages to it
 * are found. Returns false if `object` does not lie in a guarded block. */
bool sj_guard_name_object(void *object, const char *class_name, const void *freed_class);

/* Adds to a counter of the region. */
#define sj_objects_count(name, by) sj_objects_add(offsetof(sj_zombie_region, counters.name), (by))
void sj_objects_add(uint64_t offset, uint64_t by);

/* True if one of the patterns matches the name. `patterns` has the format of sj_zombie_objects. */
bool sj_objects_has_name(const char *patterns, const char *name);

/* True if the address lies in a system library that the region lists. Sets `*is_known` to true if
 * the address lies in any listed module. Async-signal-safe. */
bool sj_objects_is_system(uint64_t address, bool *is_known);

#endif
