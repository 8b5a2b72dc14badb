/* x86-64: the first versions of glibc's functions, see agent/inproc/hooks/libc_calls.h. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_LIBC_VERSIONS_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_X86_64_LIBC_VERSIONS_H

#define SJ_LIBC_FIRST "GLIBC_2.2.5"
#define SJ_LIBC_FIRST_DLADDR1 "GLIBC_2.3.3"

#endif
