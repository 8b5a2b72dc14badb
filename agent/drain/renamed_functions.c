#include "agent/drain/renamed_functions.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { TICK_BITS = 48, LISTED = 64 };

void sj_renamed_functions_deinit(sj_renamed_functions *renamed)
{
    sj_hash_map_deinit(&renamed->last);
    sj_hash_map_deinit(&renamed->open);
    free(renamed->list);
    renamed->list = NULL;
    renamed->count = 0;
}

static sj_status keep(sj_renamed_functions *renamed, const sj_renamed_function *function)
{
    SJ_TRY(sj_array_reserve(&renamed->list, &renamed->capacity, renamed->count, 1,
                            sizeof(*renamed->list)));
    const sj_hash_entry *known = sj_hash_map_find(&renamed->last, function->function, 0);
    const sj_hash_entry last = {.key = function->function, .first = (uint32_t)renamed->count + 1};
    renamed->list[renamed->count] =
        (sj_renamed_since){.renamed = *function, .before = known != NULL ? known->first : 0};
    SJ_TRY(sj_hash_map_put(&renamed->last, &last));
    renamed->count++;
    if (renamed->freed != NULL && function->named != function->function) {
        sj_unhooked_set_follow(renamed->freed, function->named, function->function);
    }
    return SJ_OK;
}

sj_status sj_renamed_functions_follow(sj_renamed_functions *renamed)
{
    sj_renamed_function list[LISTED];
    while (renamed->registry != NULL &&
           renamed->seen < sj_registry_renamed_count(renamed->registry)) {
        const size_t count =
            sj_registry_list_renamed(renamed->registry, renamed->seen, list, LISTED);
        for (size_t i = 0; i < count; i++) {
            if (list[i].process == renamed->process) {
                SJ_TRY(keep(renamed, &list[i]));
            }
        }
        renamed->seen += count;
    }
    return SJ_OK;
}

static bool is_before(uint64_t ticks, uint64_t record_ticks)
{
    const uint64_t apart = (record_ticks - ticks) << (64 - TICK_BITS);
    return (int64_t)apart >= 0;
}

/* Returns the function to record for an entry at a time; NULL `ticks`: now. */
static uint32_t name_at(const sj_renamed_functions *renamed, uint32_t function,
                        const uint64_t *ticks)
{
    const sj_hash_entry *last = sj_hash_map_find(&renamed->last, function, 0);
    for (uint32_t i = last != NULL ? last->first : 0; i != 0; i = renamed->list[i - 1].before) {
        const sj_renamed_function *known = &renamed->list[i - 1].renamed;
        if (ticks == NULL || is_before(known->ticks, *ticks)) {
            return known->named;
        }
    }
    return function;
}

static void set_function(sj_record *record, uint32_t function)
{
    const uint32_t tag =
        sj_record_make_tag(sj_record_tag(record) >> SJ_RECORD_FUNCTION_BITS, function);
    memcpy(record->bytes + 12, &tag, sizeof(tag));
}

static sj_status translate_entry(sj_renamed_functions *renamed, sj_record *record,
                                 uint32_t function)
{
    const uint64_t ticks = sj_record_ticks48(record);
    const uint64_t stack = sj_record_frame(record);
    const uint32_t named = name_at(renamed, function, &ticks);
    if (named != function) {
        const sj_hash_entry call = {.key = stack, .first = function, .second = named};
        set_function(record, named);
        return sj_hash_map_put(&renamed->open, &call);
    }
    sj_hash_entry *ended = sj_hash_map_find(&renamed->open, stack, 0);
    if (ended != NULL) { /* a throw or a longjmp ended that call */
        sj_hash_map_remove(&renamed->open, ended);
    }
    return SJ_OK;
}

static uint32_t name_of_exit(const sj_renamed_functions *renamed, const sj_record *record,
                             uint32_t function)
{
    const sj_hash_entry *call = sj_hash_map_find(&renamed->open, sj_record_frame(record), 0);
    return call != NULL && call->first == function ? call->second : function;
}

static void translate_exit(sj_renamed_functions *renamed, sj_record *record, uint32_t function)
{
    sj_hash_entry *call = sj_hash_map_find(&renamed->open, sj_record_frame(record), 0);
    if (call != NULL && call->first == function) {
        set_function(record, call->second);
        sj_hash_map_remove(&renamed->open, call);
    }
}

/* Renames a value like the entry or exit that follows it. */
static void translate_value(const sj_renamed_functions *renamed, sj_record *records, uint32_t place,
                            uint32_t count, uint32_t function)
{
    for (uint32_t i = place + 1; i < count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        if ((tag & SJ_RECORD_FUNCTION_MASK) != function) {
            continue;
        }
        if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER) {
            const uint64_t ticks = sj_record_ticks48(&records[i]);
            set_function(&records[place], name_at(renamed, function, &ticks));
            return;
        }
        if (tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_LEAVE) {
            set_function(&records[place], name_of_exit(renamed, &records[i], function));
            return;
        }
    }
    set_function(&records[place], name_at(renamed, function, NULL));
}

sj_status sj_renamed_functions_translate(sj_renamed_functions *renamed, sj_record *records,
                                         uint32_t count)
{
    for (uint32_t i = 0; i < count && renamed->count != 0; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
        switch (tag >> SJ_RECORD_FUNCTION_BITS) {
        case SJ_RECORD_VALUE:
            translate_value(renamed, records, i, count, function);
            break;
        case SJ_RECORD_ENTER:
            SJ_TRY(translate_entry(renamed, &records[i], function));
            break;
        case SJ_RECORD_LEAVE:
            translate_exit(renamed, &records[i], function);
            break;
        default:
            break;
        }
    }
    return SJ_OK;
}
