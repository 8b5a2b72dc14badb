/* Policy draft: a file or preset, changed by options, and parsed as one document at the end. */
#ifndef SJ_AGENT_POLICY_DRAFT_H
#define SJ_AGENT_POLICY_DRAFT_H

#include "agent/policy/json_place.h"
#include "agent/policy/policy.h"

typedef struct sj_policy_draft sj_policy_draft;

/* Makes a draft that holds only the defaults. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_policy_draft_new(sj_policy_draft **draft, sj_error *error);
void sj_policy_draft_free(sj_policy_draft *draft);

/* Loads a shipped policy by its name, or a file. The document is checked as a whole, so errors name
 * their place in it. Returns SJ_ENOTFOUND if neither a file nor a preset has the name, or the
 * errors of sj_policy_parse. */
SJ_MUST_CHECK sj_status sj_policy_draft_load(sj_policy_draft *draft, const char *name,
                                             sj_error *error);

/* Loads a document. Error messages start with `name`. */
SJ_MUST_CHECK sj_status sj_policy_draft_parse(sj_policy_draft *draft, const char *text, size_t size,
                                              const char *name, sj_error *error);

/* Each of these functions sets the value of `key`, for example "mode" or "calls.depth", and
 * replaces an earlier value. It returns SJ_EINVAL if that fails. */
SJ_MUST_CHECK sj_status sj_policy_draft_text(sj_policy_draft *draft, const char *key,
                                             const char *value);
SJ_MUST_CHECK sj_status sj_policy_draft_number(sj_policy_draft *draft, const char *key,
                                               uint64_t value);
SJ_MUST_CHECK sj_status sj_policy_draft_true(sj_policy_draft *draft, const char *key);
SJ_MUST_CHECK sj_status sj_policy_draft_false(sj_policy_draft *draft, const char *key);
/* Appends a rule about values. The text "FUNCTION" names all values that debug data describe.
 * "FUNCTION(NAME:KIND, ...) -> KIND" lists the parameters in source order, and the result.
 * "FUNCTION(NUMBER:KIND)" or "FUNCTION(result:KIND)" names one value. Returns SJ_EINVAL with a
 * message. */
SJ_MUST_CHECK sj_status sj_policy_draft_value(sj_policy_draft *draft, const char *text,
                                              sj_error *error);
/* Appends a rule that measures the CPU time of a function's calls. Returns SJ_EINVAL if `function`
 * is not UTF-8 text. */
SJ_MUST_CHECK sj_status sj_policy_draft_cpu(sj_policy_draft *draft, const char *function,
                                            sj_error *error);
/* Appends a rule that counts what a function's calls allocate and free. Returns SJ_EINVAL if
 * `function` is not UTF-8 text. */
SJ_MUST_CHECK sj_status sj_policy_draft_memory(sj_policy_draft *draft, const char *function,
                                               sj_error *error);
/* Appends `value` to the list `key`. Returns SJ_EINVAL if that fails. */
SJ_MUST_CHECK sj_status sj_policy_draft_append(sj_policy_draft *draft, const char *key,
                                               const char *value);

/* Loads the prototypes of the file `name`; "libc" names the prototypes that are shipped with
 * Sojourn. A rule that names a function with a prototype, and nothing else, gets its signature.
 * Returns SJ_ENOTFOUND, SJ_EINVAL with file and line, SJ_ELIMIT if the file is too large, or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_policy_draft_prototypes(sj_policy_draft *draft, const char *name,
                                                   sj_error *error);

/* Writes where a value of the document came from: "FILE:LINE:COLUMN", or "the command line" if the
 * loaded document does not contain it. */
void sj_policy_draft_origin(const sj_policy_draft *draft, const sj_json_step *steps, size_t count,
                            char *origin, size_t capacity);

/* Parses the document. Returns an error of sj_policy_parse. */
SJ_MUST_CHECK sj_status sj_policy_draft_finish(const sj_policy_draft *draft, sj_policy *policy,
                                               sj_error *error);

#endif
