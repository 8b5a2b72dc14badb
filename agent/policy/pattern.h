/* Patterns of names: a glob (fnmatch(3)), or between slashes an extended regular expression:
 * "net_*", "std::*", "-[Foo set*:]", "/^(read|write)_[0-9]+$/". Matched against symbols and what
 * people read. A glob that begins with "-[" or "+[" is about methods. */
#ifndef SJ_AGENT_POLICY_PATTERN_H
#define SJ_AGENT_POLICY_PATTERN_H

#include "proto/base/error.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum { SJ_PATTERN_MAX_BYTES = 256 };

/* A copy shares what it points to with the original: only one of them is freed. */
typedef struct sj_pattern {
    char *text;     /* as written; owned */
    regex_t *regex; /* NULL: a glob; owned */
} sj_pattern;

/* sj_pattern_make takes a copy of `text`. SJ_EINVAL with the reason: empty, or a regular expression
 * that cannot be compiled or could take for ever (counted repetition, back-references); SJ_ELIMIT
 * too long; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_pattern_make(const char *text, sj_pattern *pattern, sj_error *error);
void sj_pattern_free(sj_pattern *pattern); /* safe on a zeroed one */

/* sj_pattern_matches compares one text. Thread-safe. */
bool sj_pattern_matches(const sj_pattern *pattern, const char *text);

/* sj_pattern_matches_any returns whether one of `count` patterns matches. */
bool sj_pattern_matches_any(const sj_pattern *patterns, size_t count, const char *text);

/* sj_pattern_matches_symbol compares a symbol, and when it is mangled its source name as well: the
 * whole of it, and without its parameters. */
bool sj_pattern_matches_symbol(const sj_pattern *pattern, const char *symbol);

/* sj_pattern_same compares two lists of patterns. */
bool sj_pattern_same(const sj_pattern *left, size_t left_count, const sj_pattern *right,
                     size_t right_count);

#endif
