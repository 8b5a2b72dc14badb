#include "collector-server/store/owner_pairs.h"

#include <stdbool.h>
#include <string.h>

static bool gives(const sj_owner_event *event)
{
    return strcmp(event->event, "allocation") == 0 || strcmp(event->event, "retain") == 0;
}

static bool releases(const sj_owner_event *event)
{
    return strcmp(event->event, "release") == 0 || strcmp(event->event, "autorelease") == 0;
}

static bool is_same_function(const sj_owner_event *a, const sj_owner_event *b)
{
    return a->function[0] != '\0' && strcmp(a->function, b->function) == 0;
}

/* Returns the length of "-[Class" or "namespace::Class", or 0 for a function outside a class. */
static size_t class_bytes(const char *function)
{
    const char *end = strchr(function, ' ');
    if ((function[0] == '-' || function[0] == '+') && function[1] == '[' && end != NULL) {
        return (size_t)(end - function);
    }
    const char *scope = NULL;
    for (const char *at = strstr(function, "::"); at != NULL; at = strstr(at + 2, "::")) {
        scope = at;
    }
    return scope != NULL ? (size_t)(scope - function) : 0;
}

static bool is_same_class(const sj_owner_event *a, const sj_owner_event *b)
{
    const size_t bytes = class_bytes(a->function);
    /* skip the sign: instance and class methods match */
    const size_t skipped = bytes != 0 && a->function[1] == '[' ? 1 : 0;
    return bytes != 0 && class_bytes(b->function) == bytes &&
           memcmp(a->function + skipped, b->function + skipped, bytes - skipped) == 0;
}

static bool is_any(const sj_owner_event *a, const sj_owner_event *b)
{
    (void)a;
    (void)b;
    return true;
}

/* Pairs each event that removes an owner with the nearest earlier event that added one. */
static void pair(sj_owner_event *events, size_t count,
                 bool (*belong)(const sj_owner_event *a, const sj_owner_event *b))
{
    for (size_t i = 0; i < count; i++) {
        if (!releases(&events[i]) || events[i].partner >= 0) {
            continue;
        }
        for (size_t j = i; j-- > 0;) {
            if (gives(&events[j]) && events[j].partner < 0 && belong(&events[j], &events[i])) {
                events[i].partner = (int)j;
                events[j].partner = (int)i;
                break;
            }
        }
    }
}

void sj_pair_owners(sj_owner_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        events[i].partner = -1;
    }
    pair(events, count, is_same_function);
    pair(events, count, is_same_class);
    pair(events, count, is_any);
}
