/* A policy in the making: a file or preset, changed by flags, read as one document in the end. */
#ifndef SJ_AGENT_POLICY_DRAFT_H
#define SJ_AGENT_POLICY_DRAFT_H

#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"

typedef struct sj_policy_draft sj_policy_draft;

/* sj_policy_draft_new begins with nothing but defaults. */
SJ_MUST_CHECK sj_status sj_policy_draft_new(sj_policy_draft **draft, sj_error *error);
void sj_policy_draft_free(sj_policy_draft *draft);

/* sj_policy_draft_load takes a shipped policy by name, or a file. It is checked as a whole, so that
 * errors name their place in it. SJ_ENOTFOUND no such file or preset; errors of sj_policy_parse. */
SJ_MUST_CHECK sj_status sj_policy_draft_load(sj_policy_draft *draft, const char *name,
                                             sj_error *error);

/* sj_policy_draft_take takes a document; `name` begins the messages of errors. */
SJ_MUST_CHECK sj_status sj_policy_draft_take(sj_policy_draft *draft, const char *text, size_t size,
                                             const char *name, sj_error *error);

/* The changes: `key` is "mode" or "calls.depth". A list is appended to. */
SJ_MUST_CHECK sj_status sj_policy_draft_text(sj_policy_draft *draft, const char *key,
                                             const char *value);
SJ_MUST_CHECK sj_status sj_policy_draft_number(sj_policy_draft *draft, const char *key,
                                               uint64_t value);
SJ_MUST_CHECK sj_status sj_policy_draft_true(sj_policy_draft *draft, const char *key);
SJ_MUST_CHECK sj_status sj_policy_draft_false(sj_policy_draft *draft, const char *key);
/* sj_policy_draft_value appends a rule about values: "FUNCTION" with those that its debug data say,
 * "FUNCTION(NAME:KIND, ...) -> KIND" in source order, or one value as "FUNCTION(NUMBER:KIND)" or
 * "FUNCTION(result:KIND)". SJ_EINVAL with the sentence. */
SJ_MUST_CHECK sj_status sj_policy_draft_value(sj_policy_draft *draft, const char *text,
                                              sj_error *error);
/* sj_policy_draft_cpu appends a rule that measures the CPU time of a function's calls. */
SJ_MUST_CHECK sj_status sj_policy_draft_cpu(sj_policy_draft *draft, const char *function,
                                            sj_error *error);
/* sj_policy_draft_memory appends a rule that counts what a function's calls allocate and free. */
SJ_MUST_CHECK sj_status sj_policy_draft_memory(sj_policy_draft *draft, const char *function,
                                               sj_error *error);
SJ_MUST_CHECK sj_status sj_policy_draft_append(sj_policy_draft *draft, const char *key,
                                               const char *value);

/* sj_policy_draft_prototypes takes the prototypes of a file: a rule that names such a function
 * alone has its signature; "libc" are those that come with Sojourn. SJ_ENOTFOUND, SJ_EINVAL with
 * file and line. */
SJ_MUST_CHECK sj_status sj_policy_draft_prototypes(sj_policy_draft *draft, const char *name,
                                                   sj_error *error);

/* sj_policy_draft_origin writes where a value of the document came from: "FILE:LINE:COLUMN", or
 * "the command line" when the document that was loaded does not have it. */
void sj_policy_draft_origin(const sj_policy_draft *draft, const sj_json_step *steps, size_t count,
                            char *origin, size_t capacity);

/* sj_policy_draft_finish reads the document. */
SJ_MUST_CHECK sj_status sj_policy_draft_finish(const sj_policy_draft *draft, sj_policy *policy,
                                               sj_error *error);

#endif
