/* The sizes of memory pages. No other file names a page size (lint.pages). x86-64 has pages of
 * 4 KiB. AArch64 has pages of 4, 16 or 64 KiB: who builds the kernel chooses. */
#ifndef SJ_AGENT_ABI_PAGE_H
#define SJ_AGENT_ABI_PAGE_H

#include "agent/abi/machine.h"

#include <stdint.h>

enum {
    /* Divides the page size of every kernel. Two addresses in one piece of this size are in one
     * page, so a reader that stays in its piece touches no other page. */
    SJ_PAGE_LEAST_BYTES = 4096,
    /* A multiple of the page size of every kernel of this machine. Layouts that the compiler fixes
     * use it, and protect their parts separately. */
    SJ_PAGE_MOST_BYTES = SJ_MACHINE_PAGE_MOST_BYTES
};

/* Returns the size of a page. Asks the kernel's auxiliary vector once. Async-signal-safe. */
uint64_t sj_page_bytes(void);

/* Returns the start of the page that contains `address`. */
static inline uint64_t sj_page_start(uint64_t address)
{
    return address & ~(sj_page_bytes() - 1);
}

/* Rounds up to whole pages. */
static inline uint64_t sj_page_round_up(uint64_t bytes)
{
    return sj_page_start(bytes + sj_page_bytes() - 1);
}

#endif
