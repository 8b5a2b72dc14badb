#include "agent/policy/policy.h"
#include "collector-server/http/route.h"
#include "collector-server/query/json_rows.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1000 };

static sj_status answer_policies(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(request->database,
                           "SELECT rule_id AS id, scope, subject, app, document, set_by,"
                           " set_realtime_ns FROM policy_rules WHERE ended_realtime_ns IS NULL"
                           " ORDER BY rule_id LIMIT ?1",
                           &statement, error));
    sqlite3_bind_int64(statement, 1, LIMIT + 1);
    return sj_rows_list(statement, LIMIT, body, error);
}

/* Checks a policy document as devices do; sets nothing. */
static sj_status check_policy(sj_request *request, const json_t *input, json_t **body,
                              sj_error *error)
{
    sj_policy policy;
    const json_t *document = json_object_get(input, "policy");
    (void)request;
    if (!json_is_object(document)) {
        return sj_fail(error, SJ_EINVAL, "the body's \"policy\" has to be a policy document");
    }
    char *text = json_dumps(document, JSON_INDENT(2));
    if (text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = sj_policy_parse(text, strlen(text), "policy", &policy, error);
    if (status == SJ_OK) {
        *body = json_pack("{ss sI ss}", "name", policy.name, "version", (json_int_t)policy.version,
                          "mode", sj_policy_mode_text(policy.mode));
        sj_policy_free(&policy);
    }
    free(text);
    return status != SJ_OK ? status
           : *body != NULL ? SJ_OK
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
}

const sj_route sj_route_policies = {.pattern = "/api/v1/policies",
                                    .role = SJ_ROLE_READER,
                                    .run = answer_policies,
                                    .post_role = SJ_ROLE_OPERATOR,
                                    .post = check_policy};
