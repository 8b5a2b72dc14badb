#include "agent/daemon/json_memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char out_of_memory[] = "out of memory";

static _Thread_local unsigned failures;

static void *allocate(size_t size)
{
    void *made = malloc(size);
    failures += made == NULL;
    return made;
}

void sj_json_memory_watch(void)
{
    json_set_alloc_funcs(allocate, free);
}

unsigned sj_json_memory_failures(void)
{
    return failures;
}

/* Drops a value that was read while memory was short. */
static json_t *check(json_t *read, unsigned failures_before, json_error_t *problem)
{
    if (failures == failures_before) {
        return read;
    }
    json_decref(read);
    snprintf(problem->text, sizeof(problem->text), "%s", out_of_memory);
    return NULL;
}

json_t *sj_json_parse(const char *text, json_error_t *problem)
{
    const unsigned before = failures;
    return check(json_loads(text, JSON_REJECT_DUPLICATES, problem), before, problem);
}

json_t *sj_json_parse_file(FILE *file, json_error_t *problem)
{
    const unsigned before = failures;
    return check(json_loadf(file, JSON_REJECT_DUPLICATES, problem), before, problem);
}

bool sj_json_is_out_of_memory(const json_error_t *problem)
{
    return strcmp(problem->text, out_of_memory) == 0;
}
