#include "agent/direct/settings.h"

#include "agent/inproc/link/environment.h"

#include <stddef.h>
#include <string.h>

static const char own_name[] = "libsojourn-direct.so";

/* Copies the entries and sets the values to point into the copies. */
static void copy_all(char **environment, sj_direct_settings *settings)
{
    const struct {
        const char *name;
        const char **value;
    } places[SJ_DIRECT_SETTINGS] = {
        {"SOJOURN_DIRECT", &settings->url},
        {"SOJOURN_DIRECT_POLICY", &settings->policy},
        {"SOJOURN_DIRECT_SPOOL", &settings->spool},
        {"SOJOURN_DIRECT_SPOOL_BYTES", &settings->spool_bytes},
        {"SOJOURN_DIRECT_NAME", &settings->name},
        {"SOJOURN_DIRECT_CHILDREN", &settings->children},
        {"SOJOURN_DIRECT_WAIT", &settings->wait},
        {"SOJOURN_DIRECT_LOG", &settings->log},
        {"SOJOURN_TOKEN", &settings->token},
    };
    size_t used = 0;
    size_t count = 0;
    for (size_t i = 0; i < SJ_DIRECT_SETTINGS; i++) {
        const char *entry = sj_environment_find(environment, places[i].name);
        const size_t bytes = entry != NULL ? strlen(entry) + 1 : 0;
        *places[i].value = "";
        if (bytes > sizeof(settings->text) - used) {
            settings->is_too_long = true;
        } else if (entry != NULL) {
            char *copy = memcpy(settings->text + used, entry, bytes);
            used += bytes;
            settings->entries[count++] = copy;
            *places[i].value = sj_environment_value(copy, places[i].name);
        }
    }
    settings->entries[count] = NULL;
}

/* True if an element of LD_PRELOAD is this library. */
static bool is_own(const char *element, size_t length)
{
    const size_t name_length = sizeof(own_name) - 1;
    return length >= name_length &&
           memcmp(element + length - name_length, own_name, name_length) == 0 &&
           (length == name_length || element[length - name_length - 1] == '/');
}

/* Removes this library from the value of LD_PRELOAD. Returns false if nothing remains. */
static bool forget_own(char *value)
{
    char *to = value;
    const char *from = value;
    while (*from != '\0') {
        const size_t length = strcspn(from, ": ");
        const size_t separator = from[length] != '\0' ? 1 : 0;
        if (!is_own(from, length)) {
            memmove(to, from, length + separator);
            to += length + separator;
        }
        from += length + separator;
    }
    while (to > value && (to[-1] == ':' || to[-1] == ' ')) {
        to--;
    }
    *to = '\0';
    return to != value;
}

static void restore(char **environment)
{
    static const char ours[] = "SOJOURN_";
    char **to = environment;
    for (char **from = environment; *from != NULL; from++) {
        char *preload = sj_environment_value(*from, "LD_PRELOAD");
        if (strncmp(*from, ours, sizeof(ours) - 1) != 0 &&
            (preload == NULL || forget_own(preload))) {
            *to++ = *from;
        }
    }
    *to = NULL;
}

bool sj_direct_settings_consume(char **environment, sj_direct_settings *settings)
{
    if (sj_environment_find(environment, "SOJOURN_DIRECT") == NULL) {
        return false;
    }
    copy_all(environment, settings);
    restore(environment);
    return true;
}
