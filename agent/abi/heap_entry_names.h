/* Names of the functions whose entries the monitor of freed memory patches (agent/abi/zombies.h).
 */
#ifndef SJ_AGENT_ABI_HEAP_ENTRY_NAMES_H
#define SJ_AGENT_ABI_HEAP_ENTRY_NAMES_H

#include "agent/abi/zombies.h"

static const char *const sj_heap_entry_names[SJ_HEAP_ENTRIES] = {
    [SJ_ENTRY_MALLOC] = "malloc",
    [SJ_ENTRY_CALLOC] = "calloc",
    [SJ_ENTRY_ALIGNED_ALLOC] = "aligned_alloc",
    [SJ_ENTRY_MEMALIGN] = "memalign",
    [SJ_ENTRY_POSIX_MEMALIGN] = "posix_memalign",
    [SJ_ENTRY_VALLOC] = "valloc",
    [SJ_ENTRY_PVALLOC] = "pvalloc",
    [SJ_ENTRY_NEW] = "_Znwm",
    [SJ_ENTRY_NEW_NOTHROW] = "_ZnwmRKSt9nothrow_t",
    [SJ_ENTRY_NEW_ARRAY] = "_Znam",
    [SJ_ENTRY_NEW_ARRAY_NOTHROW] = "_ZnamRKSt9nothrow_t",
    [SJ_ENTRY_FREE] = "free",
    [SJ_ENTRY_REALLOC] = "realloc",
    [SJ_ENTRY_USABLE_SIZE] = "malloc_usable_size",
    [SJ_ENTRY_CFREE] = "cfree",
    [SJ_ENTRY_FREE_SIZED] = "free_sized",
    [SJ_ENTRY_FREE_ALIGNED_SIZED] = "free_aligned_sized",
    [SJ_ENTRY_DALLOCX] = "dallocx",
    [SJ_ENTRY_SDALLOCX] = "sdallocx",
    [SJ_ENTRY_RALLOCX] = "rallocx",
    [SJ_ENTRY_XALLOCX] = "xallocx",
    [SJ_ENTRY_SALLOCX] = "sallocx",
    [SJ_ENTRY_DELETE] = "_ZdlPv",
    [SJ_ENTRY_DELETE_NOTHROW] = "_ZdlPvRKSt9nothrow_t",
    [SJ_ENTRY_DELETE_SIZED] = "_ZdlPvm",
    [SJ_ENTRY_DELETE_ALIGNED] = "_ZdlPvSt11align_val_t",
    [SJ_ENTRY_DELETE_ALIGNED_NOTHROW] = "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    [SJ_ENTRY_DELETE_SIZED_ALIGNED] = "_ZdlPvmSt11align_val_t",
    [SJ_ENTRY_DELETE_ARRAY] = "_ZdaPv",
    [SJ_ENTRY_DELETE_ARRAY_NOTHROW] = "_ZdaPvRKSt9nothrow_t",
    [SJ_ENTRY_DELETE_ARRAY_SIZED] = "_ZdaPvm",
    [SJ_ENTRY_DELETE_ARRAY_ALIGNED] = "_ZdaPvSt11align_val_t",
    [SJ_ENTRY_DELETE_ARRAY_ALIGNED_NOTHROW] = "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    [SJ_ENTRY_DELETE_ARRAY_SIZED_ALIGNED] = "_ZdaPvmSt11align_val_t",
    [SJ_ENTRY_SIGACTION] = "sigaction",
    [SJ_ENTRY_SIGMASK] = "pthread_sigmask",
    [SJ_ENTRY_READ] = "read",
    [SJ_ENTRY_WRITE] = "write",
    [SJ_ENTRY_PREAD] = "pread64",
    [SJ_ENTRY_PWRITE] = "pwrite64",
    [SJ_ENTRY_RECV] = "recv",
    [SJ_ENTRY_SEND] = "send",
    [SJ_ENTRY_RECVFROM] = "recvfrom",
    [SJ_ENTRY_SENDTO] = "sendto"};

#endif
