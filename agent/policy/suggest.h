/* The word that was probably meant. */
#ifndef SJ_AGENT_POLICY_SUGGEST_H
#define SJ_AGENT_POLICY_SUGGEST_H

#include <stddef.h>

/* sj_suggest returns the one of `count` words that is at most two letters away from `word` (and
 * nearer than half of it), or NULL. */
const char *sj_suggest(const char *word, const char *const *words, size_t count);

#endif
