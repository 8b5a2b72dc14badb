/* Functions that the monitors of a language's objects share with that of the heap: reports, stacks,
 * and which classes are watched. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H
#define SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

extern sj_zombie_region *_Atomic sj_zombie_region_now; /* NULL: nothing is reported. */

/* sj_report_begin counts a use and claims a free report. It returns NULL if the limit per minute or
 * the share of the site is used up. `site` is the address of the code that made the mistake. The
 * caller fills in everything except the use, then calls sj_report_finish, which reads the stack of
 * `use`. Between the two may lie at most one call. Async-signal-safe. */
sj_zombie_report *sj_report_begin(uint64_t site, sj_zombie_kind kind);
void sj_report_finish(sj_zombie_report *report, const sj_zombie_trace *use);

/* Ends the program by SIGABRT. */
void sj_report_stop(void);

/* Copies the top of the stack of a trace. It puts the real return addresses of dispatched calls
 * into the copy. Bytes that cannot be read are left out. */
void sj_trace_stack(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* sj_thread_number returns the calling thread's number. It asks the kernel once.
 * sj_thread_after_fork makes it ask again. */
uint32_t sj_thread_number(void);
void sj_thread_after_fork(void);

/* Like sj_trace_stack for the calling thread, in most cases without a system call. */
void sj_stack_copy_own(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* If `is_wanted`, every allocation of the calling thread is guarded until a call with false. */
void sj_guard_next_allocations(bool is_wanted);

/* Writes down which object lies in a guarded block. `class_name` is never freed. Returns false if
 * `object` does not lie in a guarded block. When the program frees the block, the object gets the
 * class `freed_class`, which identifies later messages to it. */
bool sj_guard_name_object(void *object, const char *class_name, const void *freed_class);

/* Adds to a counter of the region. */
#define sj_objects_count(name, by) sj_objects_add(offsetof(sj_zombie_region, counters.name), (by))
void sj_objects_add(uint64_t offset, uint64_t by);

/* True if a pattern matches the name. `patterns` has the format of sj_zombie_objects. */
bool sj_objects_has_name(const char *patterns, const char *name);

/* True if the address lies in a system library that the region lists. `*is_known` is true if it
 * lies in any listed module. Async-signal-safe. */
bool sj_objects_is_system(uint64_t address, bool *is_known);

#endif
