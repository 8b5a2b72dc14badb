/* The word that was probably meant. */
#ifndef SJ_AGENT_POLICY_NEAREST_H
#define SJ_AGENT_POLICY_NEAREST_H

#include <stddef.h>

/* sj_nearest returns the one of `count` words that is at most two letters away from `word` (and
 * nearer than half of it), or NULL. */
const char *sj_nearest(const char *word, const char *const *words, size_t count);

#endif
