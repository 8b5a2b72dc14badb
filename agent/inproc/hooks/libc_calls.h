/* Declares the loader's functions that the agent calls. Compare dladdr1 and dlvsym with NULL before
 * you call them: a program that is linked against musl can load the agent, and musl lacks both.
 *
 * glibc 2.34 moved these functions from libdl to libc, under a new version. The agent asks for the
 * oldest version of each function, which every glibc has, so that programs of older systems can
 * load it. */
#ifndef SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H
#define SJ_AGENT_INPROC_HOOKS_LIBC_CALLS_H

#include "agent/abi/machine.h"

#include <dlfcn.h>

#include SJ_ARCH_FILE(hooks, libc_versions.h)

#pragma weak dladdr1
#pragma weak dlvsym

__asm__(".symver dladdr, dladdr@" SJ_LIBC_FIRST "\n"
        ".symver dladdr1, dladdr1@" SJ_LIBC_FIRST_DLADDR1 "\n"
        ".symver dlerror, dlerror@" SJ_LIBC_FIRST "\n"
        ".symver dlsym, dlsym@" SJ_LIBC_FIRST "\n"
        ".symver dlvsym, dlvsym@" SJ_LIBC_FIRST);

#endif
