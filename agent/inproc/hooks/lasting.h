/* Lasting trampolines: code addresses that the program may keep, or may be about to call, when the
 * agent detaches. Their two pages stay in the program. The first page is code that jumps to the
 * addresses in the second. While a trampoline is open, its word in the second page is the address
 * of a function of the agent. Otherwise the word is the address of code that returns 0. The next
 * agent finds and uses the same pages. */
#ifndef SJ_AGENT_INPROC_HOOKS_LASTING_H
#define SJ_AGENT_INPROC_HOOKS_LASTING_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_LASTING_MAX = 16 };

/* The second page. Agents of other versions read it. */
typedef struct sj_lasting {
    uint64_t magic;                   /* identifies the user of the pages */
    uint64_t closed;                  /* address of code that returns 0 */
    uint64_t targets[SJ_LASTING_MAX]; /* where each trampoline jumps */
    uint64_t kept;                    /* a word for the user of the pages */
} sj_lasting;

/* Returns how many bytes stay in the program. */
uint64_t sj_lasting_bytes(void);

/* Maps the pages of `count` trampolines, at most SJ_LASTING_MAX. They return 0 until they are
 * opened. Returns NULL if out of memory. */
sj_lasting *sj_lasting_new(uint64_t magic, uint32_t count);

/* Returns the address of trampoline `index`. */
uint64_t sj_lasting_address(const sj_lasting *lasting, uint32_t index);

/* Returns the pages whose trampoline `index` is at `address`. Returns NULL if no trampoline of that
 * index and magic is there. The page of the address must be readable. */
sj_lasting *sj_lasting_of(uint64_t address, uint32_t index, uint64_t magic);

/* Searches the process's memory for pages of an earlier agent. Returns NULL if there are none.
 * Reads /proc/self/maps. */
sj_lasting *sj_lasting_find(uint64_t magic);

/* Makes trampoline `index` jump to `target`. Threads may be running it. */
void sj_lasting_open(sj_lasting *lasting, uint32_t index, uint64_t target);

/* Makes the first `count` trampolines return 0. Threads may be running them. */
void sj_lasting_close(sj_lasting *lasting, uint32_t count);

#endif
