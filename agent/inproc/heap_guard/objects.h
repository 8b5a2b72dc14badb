/* What monitors of a language's objects share with that of the heap: the region, reports, which
 * classes are watched. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H
#define SJ_AGENT_INPROC_HEAP_GUARD_OBJECTS_H

#include "agent/abi/zombies.h"

#include <stdbool.h>

extern sj_zombie_region *_Atomic sj_zombie_region_now; /* NULL: nothing is reported */

/* sj_report_begin counts a use and returns the room for its report, NULL if none is to be made: the
 * limit per minute, or the share of the site, which is the address of the code that made the
 * mistake. The caller fills in everything but the use, then calls sj_report_finish, in which the
 * stack of `use` is read; at most one call lies between. Async-signal-safe. */
sj_zombie_report *sj_report_begin(uint64_t site, sj_zombie_kind kind);
void sj_report_finish(sj_zombie_report *report, const sj_zombie_trace *use);

/* sj_report_stop ends the program by SIGABRT. */
void sj_report_stop(void);

/* sj_trace_stack copies the top of the stack of a trace, with the return addresses of dispatched
 * calls; bytes that cannot be read are left out. */
void sj_trace_stack(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* sj_thread_number returns the calling thread's number, which the kernel is asked for once;
 * sj_thread_after_fork makes it ask again. */
uint32_t sj_thread_number(void);
void sj_thread_after_fork(void);

/* sj_stack_take does the same for the calling thread, in most cases without a system call. */
void sj_stack_take(sj_zombie_trace *trace, void *stack, uint32_t bytes);

/* sj_zombies_guard_next: what the calling thread allocates next is to be guarded, until it is
 * called again with false. */
void sj_zombies_guard_next(bool is_wanted);

/* sj_zombies_name_object says which object lies in a guarded block, and its class's name, which is
 * never freed. False: it lies in none. When its block is freed, the object gets the class
 * `freed_class`, so that what a message to it finds is known. */
bool sj_zombies_name_object(void *object, const char *class_name, const void *freed_class);

/* sj_objects_count adds to a counter of the region. */
#define sj_objects_count(name, by) sj_objects_add(offsetof(sj_zombie_region, counters.name), (by))
void sj_objects_add(uint64_t offset, uint64_t by);

/* sj_objects_has_name: one of the patterns, as sj_zombie_objects has them, fits a name. */
bool sj_objects_has_name(const char *patterns, const char *name);

/* sj_objects_is_system: an address lies in a system library that the region knows. `*is_known`:
 * it lies in any module. Async-signal-safe. */
bool sj_objects_is_system(uint64_t address, bool *is_known);

#endif
