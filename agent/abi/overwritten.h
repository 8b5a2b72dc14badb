/* A list of functions whose hooks the program has overwritten: their code is neither patched nor
 * original. */
#ifndef SJ_AGENT_ABI_OVERWRITTEN_H
#define SJ_AGENT_ABI_OVERWRITTEN_H

#include <stdint.h>

enum { SJ_OVERWRITTEN_NAMED = 32 };

typedef struct sj_overwritten {
    uint32_t count;                           /* number of functions */
    uint32_t functions[SJ_OVERWRITTEN_NAMED]; /* ids of the first ones */
} sj_overwritten;

/* Adds a function unless its id is stored already. If the list is full, increments `count` at each
 * call, even for a function that it has counted before. */
static inline void sj_overwritten_add(sj_overwritten *found, uint32_t function)
{
    for (uint32_t i = 0; i < found->count && i < SJ_OVERWRITTEN_NAMED; i++) {
        if (found->functions[i] == function) {
            return;
        }
    }
    if (found->count < SJ_OVERWRITTEN_NAMED) {
        found->functions[found->count] = function;
    }
    found->count++;
}

#endif
