/* Names of the functions whose entries the monitor of freed memory patches (agent/abi/zombies.h).
 */
#ifndef SJ_AGENT_ABI_ZOMBIE_HEAD_NAMES_H
#define SJ_AGENT_ABI_ZOMBIE_HEAD_NAMES_H

#include "agent/abi/zombies.h"

static const char *const sj_zombie_head_names[SJ_HEADS] = {
    [SJ_HEAD_MALLOC] = "malloc",
    [SJ_HEAD_CALLOC] = "calloc",
    [SJ_HEAD_ALIGNED_ALLOC] = "aligned_alloc",
    [SJ_HEAD_MEMALIGN] = "memalign",
    [SJ_HEAD_POSIX_MEMALIGN] = "posix_memalign",
    [SJ_HEAD_VALLOC] = "valloc",
    [SJ_HEAD_PVALLOC] = "pvalloc",
    [SJ_HEAD_NEW] = "_Znwm",
    [SJ_HEAD_NEW_NOTHROW] = "_ZnwmRKSt9nothrow_t",
    [SJ_HEAD_NEW_ARRAY] = "_Znam",
    [SJ_HEAD_NEW_ARRAY_NOTHROW] = "_ZnamRKSt9nothrow_t",
    [SJ_HEAD_FREE] = "free",
    [SJ_HEAD_REALLOC] = "realloc",
    [SJ_HEAD_USABLE_SIZE] = "malloc_usable_size",
    [SJ_HEAD_CFREE] = "cfree",
    [SJ_HEAD_FREE_SIZED] = "free_sized",
    [SJ_HEAD_FREE_ALIGNED_SIZED] = "free_aligned_sized",
    [SJ_HEAD_DALLOCX] = "dallocx",
    [SJ_HEAD_SDALLOCX] = "sdallocx",
    [SJ_HEAD_RALLOCX] = "rallocx",
    [SJ_HEAD_XALLOCX] = "xallocx",
    [SJ_HEAD_SALLOCX] = "sallocx",
    [SJ_HEAD_DELETE] = "_ZdlPv",
    [SJ_HEAD_DELETE_NOTHROW] = "_ZdlPvRKSt9nothrow_t",
    [SJ_HEAD_DELETE_SIZED] = "_ZdlPvm",
    [SJ_HEAD_DELETE_ALIGNED] = "_ZdlPvSt11align_val_t",
    [SJ_HEAD_DELETE_ALIGNED_NOTHROW] = "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    [SJ_HEAD_DELETE_SIZED_ALIGNED] = "_ZdlPvmSt11align_val_t",
    [SJ_HEAD_DELETE_ARRAY] = "_ZdaPv",
    [SJ_HEAD_DELETE_ARRAY_NOTHROW] = "_ZdaPvRKSt9nothrow_t",
    [SJ_HEAD_DELETE_ARRAY_SIZED] = "_ZdaPvm",
    [SJ_HEAD_DELETE_ARRAY_ALIGNED] = "_ZdaPvSt11align_val_t",
    [SJ_HEAD_DELETE_ARRAY_ALIGNED_NOTHROW] = "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    [SJ_HEAD_DELETE_ARRAY_SIZED_ALIGNED] = "_ZdaPvmSt11align_val_t",
    [SJ_HEAD_SIGACTION] = "sigaction",
    [SJ_HEAD_SIGMASK] = "pthread_sigmask",
    [SJ_HEAD_READ] = "read",
    [SJ_HEAD_WRITE] = "write",
    [SJ_HEAD_PREAD] = "pread64",
    [SJ_HEAD_PWRITE] = "pwrite64",
    [SJ_HEAD_RECV] = "recv",
    [SJ_HEAD_SEND] = "send",
    [SJ_HEAD_RECVFROM] = "recvfrom",
    [SJ_HEAD_SENDTO] = "sendto"};

#endif
