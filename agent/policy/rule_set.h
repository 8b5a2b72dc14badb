/* A set of rules about values, by their index in the policy. All zero: empty. */
#ifndef SJ_AGENT_POLICY_RULE_SET_H
#define SJ_AGENT_POLICY_RULE_SET_H

#include "proto/block/value.h"

#include <stddef.h>

enum { SJ_RULE_WORD_BITS = 64, SJ_RULE_WORDS = SJ_VALUE_RULES / SJ_RULE_WORD_BITS };

typedef struct sj_rule_set {
    uint64_t words[SJ_RULE_WORDS];
} sj_rule_set;

static inline void sj_rule_set_add(sj_rule_set *set, size_t rule)
{
    set->words[rule / SJ_RULE_WORD_BITS] |= UINT64_C(1) << rule % SJ_RULE_WORD_BITS;
}

static inline void sj_rule_set_remove(sj_rule_set *set, size_t rule)
{
    set->words[rule / SJ_RULE_WORD_BITS] &= ~(UINT64_C(1) << rule % SJ_RULE_WORD_BITS);
}

static inline bool sj_rule_set_has(const sj_rule_set *set, size_t rule)
{
    return (set->words[rule / SJ_RULE_WORD_BITS] >> rule % SJ_RULE_WORD_BITS & 1) != 0;
}

static inline bool sj_rule_set_is_empty(const sj_rule_set *set)
{
    uint64_t all = 0;
    for (size_t i = 0; i < SJ_RULE_WORDS; i++) {
        all |= set->words[i];
    }
    return all == 0;
}

static inline void sj_rule_set_add_all(sj_rule_set *set, const sj_rule_set *more)
{
    for (size_t i = 0; i < SJ_RULE_WORDS; i++) {
        set->words[i] |= more->words[i];
    }
}

/* Returns the first rule of the set at or after `from`; SJ_VALUE_RULES: none. */
static inline size_t sj_rule_set_next(const sj_rule_set *set, size_t from)
{
    for (size_t word = from / SJ_RULE_WORD_BITS; word < SJ_RULE_WORDS; word++) {
        const uint64_t left =
            set->words[word] &
            UINT64_MAX << (word == from / SJ_RULE_WORD_BITS ? from % SJ_RULE_WORD_BITS : 0);
        if (left != 0) {
            return word * SJ_RULE_WORD_BITS + (size_t)__builtin_ctzll(left);
        }
    }
    return SJ_VALUE_RULES;
}

/* Loops over the rules of a set, lowest index first. */
#define SJ_EACH_RULE(rule, set)                                                                    \
    for (size_t rule = sj_rule_set_next(set, 0); rule < SJ_VALUE_RULES;                            \
         rule = sj_rule_set_next(set, rule + 1))

#endif
