#include "agent/recording/change_permit.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char system_path[] = "/etc/sojourn/changes.json";

static void own_path(char path[PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    path[0] = '\0';
    if (config != NULL && config[0] == '/') {
        snprintf(path, PATH_MAX, "%.4000s/sojourn/changes.json", config);
    } else if (home != NULL && home[0] == '/') {
        snprintf(path, PATH_MAX, "%.4000s/.config/sojourn/changes.json", home);
    }
}

/* True if only root and this user can have written the file. */
static bool is_trusted(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
           (about.st_uid == 0 || about.st_uid == geteuid()) &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Reads a file. Writes NULL to `*object` if the file does not exist. */
static sj_status load(const char *path, json_t **object, sj_error *error)
{
    json_error_t problem;
    *object = NULL;
    const int file = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file < 0) {
        return SJ_OK;
    }
    if (!is_trusted(file)) {
        close(file);
        return sj_fail(error, SJ_EPERM,
                       "%s: others could have written it; give it to root or yourself, mode 0644",
                       path);
    }
    *object = json_loadfd(file, JSON_REJECT_DUPLICATES, &problem);
    close(file);
    return *object != NULL
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT, "%s, line %d: %s", path, problem.line, problem.text);
}

/* True if a pattern of the list matches. False without a list. */
static bool names(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        if (pattern != NULL && fnmatch(pattern, text, 0) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_kinds(const json_t *list, const sj_value_change *change)
{
    return (change->action != SJ_CHANGE_SET || names(list, "set")) &&
           (change->action != SJ_CHANGE_RETURN || names(list, "return")) &&
           (change->action != SJ_CHANGE_THROW || names(list, "throw")) &&
           (change->action != SJ_CHANGE_WRITE || names(list, "write")) &&
           (change->error == 0 || names(list, "errno")) &&
           (change->delay_ns == 0 || names(list, "delay"));
}

/* True if the list allows a rule's function. If the function is a pattern, the list must contain
 * the same pattern or "*". */
static bool covers(const json_t *list, const char *function)
{
    if (strpbrk(function, "*?[]\\") == NULL) {
        return names(list, function);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        if (pattern != NULL && (strcmp(pattern, "*") == 0 || strcmp(pattern, function) == 0)) {
            return true;
        }
    }
    return false;
}

static bool allows(const json_t *file, const sj_value_rule *rule, const char *program)
{
    const json_t *list = json_object_get(file, "allow");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (names(json_object_get(one, "programs"), program) &&
            covers(json_object_get(one, "functions"), rule->function.text) &&
            has_kinds(json_object_get(one, "kinds"), &rule->change)) {
            return true;
        }
    }
    return false;
}

static sj_status check_all(const sj_value_rules *rules, const char *program, json_t *const files[2],
                           sj_error *error)
{
    for (size_t i = 0; i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        if (rule->changes && !allows(files[0], rule, program) && !allows(files[1], rule, program)) {
            return sj_fail(error, SJ_EPERM,
                           "this machine does not allow rule \"%.60s\" to change %.100s in %.150s: "
                           "%s would have to name program, function and kind",
                           rule->name, rule->function.text, program, system_path);
        }
    }
    return SJ_OK;
}

sj_status sj_change_permit_check(const sj_value_rules *rules, const char *program, bool asks_user,
                                 sj_error *error)
{
    char own[PATH_MAX];
    json_t *files[2] = {NULL, NULL};
    own[0] = '\0';
    if (asks_user) {
        own_path(own);
    }
    sj_status status = load(system_path, &files[0], error);
    if (status == SJ_OK) {
        status = load(own, &files[1], error);
    }
    if (status == SJ_OK) {
        status = check_all(rules, program, files, error);
    }
    json_decref(files[0]);
    json_decref(files[1]);
    return status;
}
