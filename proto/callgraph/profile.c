#include "proto/callgraph/profile.h"

#include <stdlib.h>

enum {
    CLOSED_VERSION = 1, /* of profiles without open calls; older collectors can read them */
    VERSION = 2,
    VARINT_BYTES = 10,
    NODE_VARINTS = 10,
    LEAST_NODE_BYTES = 10,
    OPEN_CALL_VARINTS = 6
};

static size_t bound_of(const sj_callgraph *graph, size_t open_count)
{
    size_t bytes = 3 * VARINT_BYTES + open_count * OPEN_CALL_VARINTS * VARINT_BYTES;
    for (uint32_t i = 1; i < sj_callgraph_node_count(graph); i++) {
        const sj_path_node node = sj_callgraph_node(graph, i);
        bytes += NODE_VARINTS * VARINT_BYTES + sj_path_histogram_encoded_bound(&node.histogram);
    }
    return bytes;
}

static void write_node(sj_writer *writer, const sj_path_node *node, uint8_t *scratch,
                       size_t capacity)
{
    const size_t histogram = sj_path_histogram_encode(&node->histogram, scratch, capacity);
    sj_write_varint(writer, node->parent);
    sj_write_varint(writer, node->function);
    sj_write_varint(writer, node->calls);
    sj_write_varint(writer, node->total_ticks);
    sj_write_varint(writer, node->self_ticks);
    sj_write_varint(writer, node->calls != 0 ? node->min_ticks : 0);
    sj_write_varint(writer, node->max_ticks);
    sj_write_varint(writer, node->unwound);
    sj_write_varint(writer, node->untrusted);
    sj_write_varint(writer, histogram);
    sj_write_bytes(writer, scratch, histogram);
}

static void write_open_call(sj_writer *writer, const sj_profile_open_call *call)
{
    sj_write_varint(writer, call->stream);
    sj_write_varint(writer, call->depth);
    sj_write_varint(writer, call->function);
    sj_write_varint(writer, call->flags);
    sj_write_varint(writer, call->call_index);
    sj_write_varint(writer, call->start_ticks);
}

sj_status sj_profile_encode(const sj_callgraph *graph, const sj_profile_open_call *open_calls,
                            size_t open_count, uint8_t **bytes, size_t *size)
{
    const size_t bound = bound_of(graph, open_count);
    uint8_t *made = malloc(2 * bound);
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    sj_writer writer = sj_writer_of(made, bound);
    const uint32_t count = sj_callgraph_node_count(graph);
    sj_write_varint(&writer, open_count > 0 ? VERSION : CLOSED_VERSION);
    sj_write_varint(&writer, count - 1);
    for (uint32_t i = 1; i < count; i++) {
        /* a node's number is 1 + its index here, because the root is left out */
        const sj_path_node node = sj_callgraph_node(graph, i);
        write_node(&writer, &node, made + bound, bound);
    }
    if (open_count > 0) {
        sj_write_varint(&writer, open_count);
    }
    for (size_t i = 0; i < open_count; i++) {
        write_open_call(&writer, &open_calls[i]);
    }
    *bytes = made;
    *size = sj_writer_used(&writer);
    return SJ_OK;
}

static sj_status read_node(sj_reader *reader, uint32_t place, sj_path_node *node)
{
    const uint64_t parent = sj_read_varint(reader);
    const uint64_t function = sj_read_varint(reader);
    node->calls = sj_read_varint(reader);
    node->total_ticks = sj_read_varint(reader);
    node->self_ticks = sj_read_varint(reader);
    node->min_ticks = sj_read_varint(reader);
    node->max_ticks = sj_read_varint(reader);
    node->unwound = sj_read_varint(reader);
    node->untrusted = sj_read_varint(reader);
    const uint64_t bytes = sj_read_varint(reader);
    const uint8_t *histogram =
        bytes <= sj_reader_left(reader) ? sj_read_bytes(reader, bytes) : NULL;
    if (reader->bad || (histogram == NULL && bytes != 0) || parent > place || function == 0 ||
        function > UINT32_MAX || node->self_ticks > node->total_ticks ||
        node->min_ticks > node->max_ticks) {
        return SJ_ECORRUPT;
    }
    node->parent = (uint32_t)parent;
    node->function = (uint32_t)function;
    return bytes == 0 ? SJ_OK
                      : sj_path_histogram_decode((sj_slice){.data = histogram, .size = bytes},
                                                 &node->histogram);
}

static sj_status read_nodes(sj_reader *reader, sj_profile *profile)
{
    const uint64_t wanted = sj_read_varint(reader);
    if (wanted > SJ_PROFILE_MAX_NODES || wanted > sj_reader_left(reader) / LEAST_NODE_BYTES) {
        return wanted > SJ_PROFILE_MAX_NODES ? SJ_ELIMIT : SJ_ECORRUPT;
    }
    profile->nodes = calloc((size_t)wanted + 1, sizeof(*profile->nodes));
    if (profile->nodes == NULL) {
        return SJ_ENOMEM;
    }
    profile->count = (uint32_t)wanted;
    for (uint32_t i = 0; i < wanted; i++) {
        SJ_TRY(read_node(reader, i, &profile->nodes[i]));
    }
    return SJ_OK;
}

static sj_status read_open_call(sj_reader *reader, sj_profile_open_call *call)
{
    uint64_t small[4];
    for (size_t i = 0; i < 4; i++) {
        small[i] = sj_read_varint(reader);
        if (small[i] > UINT32_MAX) {
            return SJ_ECORRUPT;
        }
    }
    *call = (sj_profile_open_call){.stream = (uint32_t)small[0],
                                   .depth = (uint32_t)small[1],
                                   .function = (uint32_t)small[2],
                                   .flags = (uint32_t)small[3],
                                   .call_index = sj_read_varint(reader),
                                   .start_ticks = sj_read_varint(reader)};
    return reader->bad || call->function == 0 || call->stream == 0 ||
                   call->call_index >= UINT64_C(1) << SJ_CALL_INDEX_BITS ||
                   call->start_ticks > INT64_MAX
               ? SJ_ECORRUPT
               : SJ_OK;
}

static int compare_open_calls(const void *left, const void *right)
{
    const sj_profile_open_call *a = left;
    const sj_profile_open_call *b = right;
    return a->stream != b->stream ? (a->stream > b->stream) - (a->stream < b->stream)
                                  : (a->depth > b->depth) - (a->depth < b->depth);
}

static sj_status read_open_calls(sj_reader *reader, sj_profile *profile)
{
    const uint64_t wanted = sj_read_varint(reader);
    if (wanted > SJ_PROFILE_MAX_OPEN_CALLS || wanted > sj_reader_left(reader) / OPEN_CALL_VARINTS) {
        return wanted > SJ_PROFILE_MAX_OPEN_CALLS ? SJ_ELIMIT : SJ_ECORRUPT;
    }
    profile->open_calls = calloc((size_t)wanted + 1, sizeof(*profile->open_calls));
    if (profile->open_calls == NULL) {
        return SJ_ENOMEM;
    }
    profile->open_count = (uint32_t)wanted;
    for (uint32_t i = 0; i < wanted; i++) {
        SJ_TRY(read_open_call(reader, &profile->open_calls[i]));
    }
    qsort(profile->open_calls, profile->open_count, sizeof(*profile->open_calls),
          compare_open_calls);
    return SJ_OK;
}

sj_status sj_profile_decode(sj_slice bytes, sj_profile *profile)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint64_t version = sj_read_varint(&reader);
    *profile = (sj_profile){0};
    if (reader.bad || version < CLOSED_VERSION || version > VERSION) {
        return reader.bad ? SJ_ECORRUPT : SJ_EVERSION;
    }
    sj_status status = read_nodes(&reader, profile);
    if (status == SJ_OK && version == VERSION) {
        status = read_open_calls(&reader, profile);
    }
    if (status == SJ_OK && (reader.bad || sj_reader_left(&reader) != 0)) {
        status = SJ_ECORRUPT;
    }
    if (status != SJ_OK) {
        sj_profile_deinit(profile);
    }
    return status;
}

void sj_profile_deinit(sj_profile *profile)
{
    for (uint32_t i = 0; i < profile->count; i++) {
        sj_path_histogram_deinit(&profile->nodes[i].histogram);
    }
    free(profile->nodes);
    free(profile->open_calls);
    *profile = (sj_profile){0};
}
