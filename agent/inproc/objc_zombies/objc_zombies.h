/* Objective-C zombies: the agent keeps deallocated objects of GCC's runtime in a queue and frees
 * them later. A message to such an object is reported (agent/abi/zombies.h) and returns zero.
 *
 * Only one thread at a time may call these functions. They take locks of the Objective-C runtime
 * and of the C library's allocator. Other threads may run. The caller holds none of these locks. */
#ifndef SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H
#define SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H

#include <stdbool.h>

/* Starts to keep deallocated objects, also of classes that the program registers later. With
 * `enters_methods`, also detects messages to freed objects that the program sends by calling the
 * address of a method. Returns false if the settings of the region do not ask for it, or if keeping
 * objects is not possible; then the region says why. May be called again. */
bool sj_objc_zombies_start(bool enters_methods);

/* Rebinds the modules that were loaded since the last call. Takes only the loader's lock. */
void sj_objc_zombies_rebind_modules(void);

/* Frees all kept objects and undoes all changes. Trampolines and classes of which the program may
 * have stored the addresses stay; they lead directly to the program's own methods. */
void sj_objc_zombies_stop(void);

/* Frees the older half of the kept objects. */
void sj_objc_zombies_shrink(void);

/* Releases locks that threads of the parent held. Call it on the only thread of a forked child.
 * Takes no lock. */
void sj_objc_zombies_after_fork(void);

#endif
