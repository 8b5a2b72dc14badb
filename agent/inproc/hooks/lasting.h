/* Lasting trampolines: addresses of ours that the program may keep for good, or be about to call
 * when the agent leaves. Two pages that stay in the program: code that jumps to the addresses in
 * the cells of the page behind it, which are the agent's while the process is recorded, and after
 * that that of code which returns 0 at once. The next agent finds and uses the same pages. */
#ifndef SJ_AGENT_INPROC_HOOKS_LASTING_H
#define SJ_AGENT_INPROC_HOOKS_LASTING_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_LASTING_MAX = 16 };

/* The second page. Agents of other versions read it. */
typedef struct sj_lasting {
    uint64_t magic;  /* whose it is */
    uint64_t closed; /* address of a return */
    uint64_t targets[SJ_LASTING_MAX];
    uint64_t kept; /* a word of the user's */
} sj_lasting;

/* sj_lasting_bytes is how much stays in the program. */
uint64_t sj_lasting_bytes(void);

/* sj_lasting_make makes the pages of `count` trampolines, all closed; NULL: no memory. */
sj_lasting *sj_lasting_make(uint64_t magic, uint32_t count);

/* sj_lasting_address is where trampoline `index` is called. */
uint64_t sj_lasting_address(const sj_lasting *lasting, uint32_t index);

/* sj_lasting_of returns the pages that `address` is trampoline `index` of; NULL: it is none. The
 * page of the address can be read. */
sj_lasting *sj_lasting_of(uint64_t address, uint32_t index, uint64_t magic);

/* sj_lasting_find looks through the memory of the process for pages of an earlier agent; NULL:
 * there are none. Reads /proc/self/maps. */
sj_lasting *sj_lasting_find(uint64_t magic);

/* sj_lasting_open leads trampoline `index` to `target`; sj_lasting_close closes the first `count`.
 * Any thread may be in any of them. */
void sj_lasting_open(sj_lasting *lasting, uint32_t index, uint64_t target);
void sj_lasting_close(sj_lasting *lasting, uint32_t count);

#endif
