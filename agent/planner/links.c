#include "agent/planner/targets.h"

#include "proto/base/array.h"

#include <stdlib.h>

sj_status sj_links_add(sj_links *links, uint32_t from, uint32_t to)
{
    SJ_TRY(
        sj_array_reserve(&links->items, &links->capacity, links->count, 1, sizeof(*links->items)));
    links->items[links->count++] = (sj_link){.from = from, .to = to};
    return SJ_OK;
}

void sj_links_free(sj_found_links *found)
{
    free(found->jumps.items);
    free(found->strong.items);
    free(found->weak.items);
    free(found->labels.items);
    *found = (sj_found_links){0};
}
