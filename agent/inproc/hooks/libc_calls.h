/* What not every C library has: musl lacks these, and a program that is linked against it loads the
 * agent all the same. Compared with NULL before they are called. */
#ifndef SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H
#define SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H

#include <dlfcn.h>

#pragma weak dladdr1
#pragma weak dlvsym

#endif
