/* Finds the word that a user probably meant. */
#ifndef SJ_AGENT_POLICY_SUGGEST_H
#define SJ_AGENT_POLICY_SUGGEST_H

#include <stddef.h>

/* Returns the word that differs from `word` by at most two letters, and by less than half of it;
 * else NULL. */
const char *sj_suggest(const char *word, const char *const *words, size_t count);

#endif
