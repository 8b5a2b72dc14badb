/* Functions that musl lacks. A program that is linked against musl can load the agent all the same.
 * Compare them with NULL before you call them. */
#ifndef SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H
#define SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H

#include <dlfcn.h>

#pragma weak dladdr1
#pragma weak dlvsym

#endif
