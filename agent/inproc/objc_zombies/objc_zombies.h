/* Objective-C zombies: objects of GCC's runtime that were deallocated are kept in a queue for a
 * while and answer every message by a report (agent/abi/zombies.h), and zero.
 *
 * The functions below are called by one thread at a time. They take locks of the language's runtime
 * and of the C library's allocator: other threads run, and the caller holds none of these. */
#ifndef SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H
#define SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H

#include <stdbool.h>

/* sj_objc_zombies_start begins to keep objects, if the region's settings say so; what registers
 * later is followed. `enters_methods`: code that the program asked for while an object lived is
 * told apart, too, by what the runtime's tables say in the place of methods. May be repeated.
 * False: nothing is to be kept, or it cannot be; the region says why. */
bool sj_objc_zombies_start(bool enters_methods);

/* sj_objc_zombies_follow rebinds modules that were loaded since. Takes the loader's lock only. */
void sj_objc_zombies_follow(void);

/* sj_objc_zombies_stop lets all objects go and gives the program back what was changed. Code and
 * classes that the program may have kept stay, and go straight to the program's own. */
void sj_objc_zombies_stop(void);

/* sj_objc_zombies_shrink lets the older half of the kept objects go. */
void sj_objc_zombies_shrink(void);

/* sj_objc_zombies_after_fork goes on in the only thread of a forked child. Takes no lock. */
void sj_objc_zombies_after_fork(void);

#endif
