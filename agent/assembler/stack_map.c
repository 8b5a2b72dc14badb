#include "agent/assembler/stack_map.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"

#include <stdlib.h>

enum { REACH_BYTES = 12 * 1024, ABOVE_BYTES = 1024 };

/* Returns the index of the first stream whose base is at or above the address. */
static uint32_t find_position(const sj_stack_map *map, uint64_t stack)
{
    return SJ_BISECT(0, map->count, i, map->streams[i]->base < stack);
}

/* True if an address at or below the base of a stream's stack belongs to the stream. */
static bool reaches(const sj_call_stack *stream, uint64_t stack)
{
    if (stack >= stream->lowest) {
        return true;
    }
    const uint64_t top = stream->depth > 0 ? stream->frames[stream->depth - 1].stack : stream->base;
    return top - stack <= REACH_BYTES;
}

sj_call_stack *sj_stack_map_find(sj_stack_map *map, uint64_t stack)
{
    const uint32_t position = find_position(map, stack);
    if (position < map->count && reaches(map->streams[position], stack)) {
        sj_call_stack *stream = map->streams[position];
        stream->lowest = stack < stream->lowest ? stack : stream->lowest;
        return stream;
    }
    if (position > 0 && stack - map->streams[position - 1]->base <= ABOVE_BYTES) {
        sj_call_stack *stream = map->streams[position - 1];
        stream->base = stack;
        return stream;
    }
    return NULL;
}

sj_status sj_stack_map_add(sj_stack_map *map, sj_call_stack *stream)
{
    SJ_TRY(sj_array_reserve(&map->streams, &map->capacity, map->count, 1, sizeof(*map->streams)));
    const uint32_t position = find_position(map, stream->base);
    memmove(map->streams + position + 1, map->streams + position,
            (map->count - position) * sizeof(*map->streams));
    map->streams[position] = stream;
    map->count++;
    return SJ_OK;
}

void sj_stack_map_deinit(sj_stack_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        sj_call_stack_free(map->streams[i]);
    }
    free(map->streams);
    *map = (sj_stack_map){0};
}
