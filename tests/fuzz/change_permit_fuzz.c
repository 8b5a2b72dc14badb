/* Reads arbitrary bytes as the file that allows rules to change calls. The file is read, or refused
 * with a reason. The verdict on several rules must agree with the verdicts on each. A file without
 * a list of permissions must not allow anything. */
#include "agent/policy/policy.h"
#include "agent/recording/change_permit.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char granting[] = "{\"allow\": [{\"programs\": [\"/usr/bin/curl\"], \"functions\": "
                               "[\"*\"], \"kinds\": [\"set\", \"return\", \"errno\", \"delay\"]}]}";

enum { RULES = 5 };

/* One rule for each kind of change, and one for a pattern of functions. The last two rules have two
 * kinds. */
static const char *const rules[RULES] = {
    "{\"function\": \"read\", \"argument\": 3, \"as\": \"int\", \"change\": {\"set\": 1}}",
    "{\"function\": \"open\", \"argument\": 2, \"as\": \"int\", \"change\": {\"errno\": 13}}",
    "{\"function\": \"connect\", \"argument\": 1, \"as\": \"int\", \"change\": {\"delay\": "
    "\"1ms\"}}",
    "{\"function\": \"malloc\", \"argument\": 1, \"as\": \"ulong\", \"change\": {\"return\": 0, "
    "\"errno\": 12}}",
    "{\"function\": \"open*\", \"argument\": 1, \"as\": \"long\", \"change\": {\"set\": 2, "
    "\"delay\": \"1ms\"}}"};

static char folder[] = "/tmp/sj_change_permit_XXXXXX";
static char path[96];
static sj_policy single[RULES];
static sj_policy all;

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void read_policy(const char *list, sj_policy *policy)
{
    char text[2048];
    sj_error error = {0};
    const int bytes = snprintf(text, sizeof(text), "{\"policy\": 1, \"values\": [%s]}", list);
    must(sj_policy_parse(text, (size_t)bytes, "rules", policy, &error) == SJ_OK);
}

static void write_permit(const void *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

static sj_status ask(const sj_policy *policy)
{
    sj_error error = {0};
    const sj_status status =
        sj_change_permit_check(policy->selection.values, "/usr/bin/curl", true, &error);
    must(status == SJ_OK || status == SJ_EPERM || status == SJ_ECORRUPT);
    must((status == SJ_OK) == (error.text[0] == '\0'));
    return status;
}

static void clean_up(void)
{
    char below[64];
    (void)!unlink(path);
    snprintf(below, sizeof(below), "%s/sojourn", folder);
    (void)!rmdir(below);
    (void)!rmdir(folder);
    for (size_t i = 0; i < RULES; i++) {
        sj_policy_free(&single[i]);
    }
    sj_policy_free(&all);
}

/* Also checks that the rules are refused without a file, and allowed by a file that names them. If
 * /etc on this machine allows the rules, the test could not detect anything, so it aborts. */
static void set_up(void)
{
    char text[2048] = "";
    char below[64];
    must(mkdtemp(folder) != NULL && setenv("XDG_CONFIG_HOME", folder, 1) == 0);
    snprintf(below, sizeof(below), "%s/sojourn", folder);
    must(mkdir(below, 0700) == 0);
    snprintf(path, sizeof(path), "%s/changes.json", below);
    for (size_t i = 0; i < RULES; i++) {
        const size_t used = strlen(text);
        read_policy(rules[i], &single[i]);
        snprintf(text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : ", ", rules[i]);
    }
    read_policy(text, &all);
    atexit(clean_up);
    must(ask(&all) == SJ_EPERM);
    write_permit(granting, strlen(granting));
    must(ask(&all) == SJ_OK);
}

/* True if the bytes are a document with an "allow" list that is not empty. */
static bool has_permissions(const uint8_t *data, size_t size)
{
    json_t *document = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    const bool has = json_array_size(json_object_get(document, "allow")) != 0;
    json_decref(document);
    return has;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_each_allowed = true;
    bool is_any_allowed = false;
    if (path[0] == '\0') {
        set_up();
    }
    write_permit(data, size);
    for (size_t i = 0; i < RULES; i++) {
        const bool is_allowed = ask(&single[i]) == SJ_OK;
        is_each_allowed = is_each_allowed && is_allowed;
        is_any_allowed = is_any_allowed || is_allowed;
    }
    must((ask(&all) == SJ_OK) == is_each_allowed);
    must(!is_any_allowed || has_permissions(data, size));
    return 0;
}
