#include "agent/daemon/device_policies.h"

#include "agent/daemon/state_file.h"
#include "agent/host/directories.h"
#include "agent/policy/policy.h"
#include "proto/base/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 32 };

static const char *name_file(uint32_t number, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, number != 0 ? "policies-%08x.json" : "policies.json", number);
    return name;
}

uint32_t sj_device_policies_number(size_t place, const char *url)
{
    return place == 0 ? 0 : sj_crc32c(0, url, strlen(url)) | 1;
}

static sj_status check_document(const json_t *rule, size_t number, sj_error *error)
{
    char origin[32];
    sj_policy policy;
    char *text = json_dumps(json_object_get(rule, "policy"), JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text == NULL) {
        return sj_fail(error, SJ_EINVAL, "rule %zu has no policy", number);
    }
    snprintf(origin, sizeof(origin), "rule %zu", number);
    const sj_status status = sj_policy_parse(text, strlen(text), origin, &policy, error);
    free(text);
    if (status == SJ_OK) {
        sj_policy_free(&policy);
    }
    return status;
}

sj_status sj_device_policies_check(const json_t *policies, sj_error *error)
{
    size_t index;
    json_t *rule;
    const json_t *rules = json_object_get(policies, "rules");
    const char *digest = json_string_value(json_object_get(policies, "digest"));
    if (digest == NULL || strlen(digest) >= SJ_POLICIES_DIGEST_BYTES || !json_is_array(rules)) {
        return sj_fail(error, SJ_EINVAL,
                       "policies: \"digest\" has to be a short text and \"rules\" "
                       "a list");
    }
    json_array_foreach((json_t *)(uintptr_t)rules, index, rule)
    {
        if (!json_is_string(json_object_get(rule, "app"))) {
            return sj_fail(error, SJ_EINVAL, "rule %zu: \"app\" has to be a text", index + 1);
        }
        SJ_TRY(check_document(rule, index + 1, error));
    }
    return SJ_OK;
}

sj_status sj_device_policies_keep(uint32_t number, const json_t *policies, sj_error *error)
{
    char name[NAME_BYTES];
    SJ_TRY(sj_device_policies_check(policies, error));
    return sj_state_file_keep(name_file(number, name), policies, error);
}

void sj_device_policies_digest(uint32_t number, char digest[SJ_POLICIES_DIGEST_BYTES])
{
    char name[NAME_BYTES];
    sj_error error = {0};
    json_t *kept = NULL;
    const sj_status status = sj_state_file_load(name_file(number, name), &kept, &error);
    const char *known = json_string_value(json_object_get(kept, "digest"));
    snprintf(digest, SJ_POLICIES_DIGEST_BYTES, "%s",
             known != NULL            ? known
             : status == SJ_ENOTFOUND ? ""
                                      : "?");
    json_decref(kept);
}

sj_status sj_device_policies_find(uint32_t number, const char *app, json_t **policy,
                                  sj_error *error)
{
    char name[NAME_BYTES];
    size_t index;
    json_t *rule;
    json_t *kept = NULL;
    *policy = NULL;
    sj_status status = sj_state_file_load(name_file(number, name), &kept, error);
    if (status == SJ_ENOTFOUND) {
        return SJ_OK;
    }
    if (status == SJ_OK) {
        status = sj_device_policies_check(kept, error);
    }
    json_array_foreach(json_object_get(kept, "rules"), index, rule)
    {
        const char *own = json_string_value(json_object_get(rule, "app"));
        if (status == SJ_OK && *policy == NULL &&
            (own[0] == '\0' || (app != NULL && strcmp(own, app) == 0))) {
            *policy = json_incref(json_object_get(rule, "policy"));
        }
    }
    json_decref(kept);
    return status;
}
