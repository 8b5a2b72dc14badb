/* Pattern of names: a glob (fnmatch(3)), or an extended regular expression between slashes.
 * Examples: "net_*", "std::*", "-[Foo set*:]", "/^(read|write)_[0-9]+$/". It is matched against
 * symbols and source names. A glob that starts with "-[" or "+[" is about methods.
 * "MODULE+0xOFFSET" names functions by their place (function_place.h). */
#ifndef SJ_AGENT_POLICY_PATTERN_H
#define SJ_AGENT_POLICY_PATTERN_H

#include "agent/policy/function_place.h"
#include "proto/base/error.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum { SJ_PATTERN_MAX_BYTES = 256 };

/* A copy shares its memory with the original: free only one of them. */
typedef struct sj_pattern {
    char *text;               /* as written; owned */
    regex_t *regex;           /* NULL: a glob; owned */
    sj_function_place *place; /* NULL: a pattern of names; owned */
} sj_pattern;

/* Compiles a copy of `text`. Returns SJ_EINVAL with the reason if it is empty, is not a valid
 * regular expression, or could match without end (counted repetition, back-references). Returns
 * SJ_ELIMIT if it is too long, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_pattern_make(const char *text, sj_pattern *pattern, sj_error *error);
void sj_pattern_free(sj_pattern *pattern); /* safe on a zeroed pattern */

/* True if the pattern matches a text. Thread-safe. */
bool sj_pattern_matches(const sj_pattern *pattern, const char *text);

/* True if one of `count` patterns matches. */
bool sj_pattern_matches_any(const sj_pattern *patterns, size_t count, const char *text);

/* True if the pattern matches a function, given as a symbol or as a key (sj_function_key). If the
 * symbol is mangled, also compares its source name, with and without its parameters. A pattern of a
 * place matches only keys, and its own text. */
bool sj_pattern_matches_symbol(const sj_pattern *pattern, const char *symbol);

/* True if two lists hold the same patterns. */
bool sj_pattern_same(const sj_pattern *left, size_t left_count, const sj_pattern *right,
                     size_t right_count);

#endif
