#include "agent/daemon/apps.h"

#include "agent/daemon/state_file.h"
#include "agent/policy/suggest.h"

#include <stdint.h>
#include <string.h>

enum { WORDS_MAX = 1024 };

static const char file_name[] = "apps.json";

static bool is_command(const json_t *command)
{
    size_t index;
    json_t *word;
    if (!json_is_array(command) || json_array_size(command) == 0 ||
        json_array_size(command) > WORDS_MAX) {
        return false;
    }
    json_array_foreach(command, index, word)
    {
        if (!json_is_string(word)) {
            return false;
        }
    }
    return true;
}

/* True if the object maps names to strings, or is absent (NULL). */
static bool is_text_object(const json_t *object)
{
    const char *key;
    json_t *value;
    if (object == NULL) {
        return true;
    }
    if (!json_is_object(object)) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!json_is_string(value) || key[0] == '\0') {
            return false;
        }
    }
    return true;
}

/* True for a list of commands, or if the list is absent (NULL). */
static bool is_list_of_commands(const json_t *list)
{
    size_t index;
    json_t *command;
    if (list == NULL) {
        return true;
    }
    if (!json_is_array(list)) {
        return false;
    }
    json_array_foreach(list, index, command)
    {
        if (!is_command(command)) {
            return false;
        }
    }
    return true;
}

sj_status sj_apps_check(const json_t *app, sj_error *error)
{
    const char *name = json_string_value(json_object_get(app, "name"));
    const char *shown = name != NULL ? name : "the program";
    if (!is_command(json_object_get(app, "command"))) {
        return sj_fail(error, SJ_EINVAL, "%s: \"command\" has to be a list of 1 to %d strings",
                       shown, WORDS_MAX);
    }
    if (!is_text_object(json_object_get(app, "environment"))) {
        return sj_fail(error, SJ_EINVAL, "%s: \"environment\" has to map names to strings", shown);
    }
    if (!is_list_of_commands(json_object_get(app, "prepare"))) {
        return sj_fail(
            error, SJ_EINVAL,
            "%s: \"prepare\" has to be a list of commands, each a list of 1 to %d strings", shown,
            WORDS_MAX);
    }
    const json_t *directory = json_object_get(app, "directory");
    if (directory != NULL &&
        (!json_is_string(directory) || json_string_value(directory)[0] != '/')) {
        return sj_fail(error, SJ_EINVAL, "%s: \"directory\" has to be an absolute path", shown);
    }
    return SJ_OK;
}

/* Checks one app of the catalogue: the name, which no earlier app has, the names of all keys, and
 * the values that sj_apps_check checks. Returns SJ_EINVAL. */
static sj_status check_entry(const json_t *apps, size_t place, sj_error *error)
{
    static const char *const keys[] = {"name",      "command", "directory", "environment",
                                       "prepare",   "policy",  "libs",      "modules",
                                       "functions", "exclude", "max_bytes"};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
    const char *key;
    json_t *value;
    json_t *app = json_array_get(apps, place);
    const char *name = json_string_value(json_object_get(app, "name"));
    if (name == NULL || name[0] == '\0') {
        return sj_fail(error, SJ_EINVAL, "app %zu has no \"name\"", place + 1);
    }
    json_object_foreach(app, key, value)
    {
        size_t known = 0;
        while (known < KEYS && strcmp(keys[known], key) != 0) {
            known++;
        }
        if (known == KEYS) {
            const char *nearest = sj_suggest(key, keys, KEYS);
            return sj_fail(error, SJ_EINVAL, "%.100s: unknown key \"%.40s\"%s%s%s", name, key,
                           nearest != NULL ? "; did you mean \"" : "",
                           nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
        }
    }
    for (size_t i = 0; i < place; i++) {
        const char *other = json_string_value(json_object_get(json_array_get(apps, i), "name"));
        if (other != NULL && strcmp(other, name) == 0) {
            return sj_fail(error, SJ_EINVAL, "two apps are called \"%.100s\"", name);
        }
    }
    return sj_apps_check(app, error);
}

sj_status sj_apps_check_catalogue(const json_t *catalogue, sj_error *error)
{
    const json_t *list = json_object_get(catalogue, "apps");
    if (!json_is_array(list)) {
        return sj_fail(error, SJ_ECORRUPT, "\"apps\" has to be a list");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (check_entry(list, i, error) != SJ_OK) {
            return SJ_ECORRUPT;
        }
    }
    return SJ_OK;
}

sj_status sj_apps_load(json_t **apps, sj_error *error)
{
    json_t *file = NULL;
    sj_error problem = {0};
    sj_status status = sj_state_file_load(file_name, &file, error);
    if (status == SJ_ENOTFOUND) {
        *apps = json_array();
        return *apps != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    SJ_TRY(status);
    status = sj_apps_check_catalogue(file, &problem);
    if (status == SJ_OK) {
        *apps = json_incref(json_object_get(file, "apps"));
    } else {
        sj_fail(error, status, "%s: %s", file_name, problem.text);
    }
    json_decref(file);
    return status;
}
