/* Objective-C zombies: deallocated objects of GCC's runtime are kept in a queue for a while. A
 * message to such an object is reported (agent/abi/zombies.h) and returns zero.
 *
 * Only one thread at a time may call these functions. They take locks of the Objective-C runtime
 * and of the C library's allocator. Other threads may run; the caller holds none of these locks. */
#ifndef SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H
#define SJ_AGENT_INPROC_OBJC_ZOMBIES_OBJC_ZOMBIES_H

#include <stdbool.h>

/* Starts to keep freed objects, if the settings of the region ask for it. Classes that the program
 * registers later are included. With `enters_methods`, methods that the program looked up while an
 * object lived find freed receivers, too. Returns false if nothing is to be kept, or if it is not
 * possible; the region says why. May be called again. */
bool sj_objc_zombies_start(bool enters_methods);

/* Rebinds the modules that were loaded since the last call. Takes only the loader's lock. */
void sj_objc_zombies_rebind_modules(void);

/* Frees all kept objects and undoes all changes. Code and classes that the program may have kept
 * stay, and lead directly to the program's own methods. */
void sj_objc_zombies_stop(void);

/* Frees the older half of the kept objects. */
void sj_objc_zombies_shrink(void);

/* Makes a forked child's queues usable. Call it on the child's only thread. Takes no lock. */
void sj_objc_zombies_after_fork(void);

#endif
