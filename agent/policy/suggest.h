/* Finds the word that a user probably meant. */
#ifndef SJ_AGENT_POLICY_SUGGEST_H
#define SJ_AGENT_POLICY_SUGGEST_H

#include <stddef.h>

/* Returns the element of `words` that differs from `word` by the fewest letters: at most two, and
 * fewer than its own length. Returns NULL if there is none, or if `word` is empty or very long. */
const char *sj_suggest(const char *word, const char *const *words, size_t count);

#endif
