#include "proto/callgraph/profile.h"

#include <stdlib.h>

enum { VERSION = 1, VARINT_BYTES = 10, NODE_VARINTS = 10, LEAST_NODE_BYTES = 10 };

static size_t bound_of(const sj_callgraph *graph)
{
    size_t bytes = 2 * VARINT_BYTES;
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

sj_status sj_profile_encode(const sj_callgraph *graph, uint8_t **bytes, size_t *size)
{
    const size_t bound = bound_of(graph);
    uint8_t *made = malloc(2 * bound);
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    sj_writer writer = sj_writer_of(made, bound);
    const uint32_t count = sj_callgraph_node_count(graph);
    sj_write_varint(&writer, VERSION);
    sj_write_varint(&writer, count - 1);
    for (uint32_t i = 1; i < count; i++) {
        /* Nodes are numbered from 1 behind the root: a node's number is 1 + its place. */
        const sj_path_node node = sj_callgraph_node(graph, i);
        write_node(&writer, &node, made + bound, bound);
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
        bytes <= sj_reader_left(reader) ? sj_reader_take(reader, bytes) : NULL;
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

sj_status sj_profile_decode(sj_slice bytes, sj_path_node **nodes, uint32_t *count)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    const uint64_t version = sj_read_varint(&reader);
    const uint64_t wanted = sj_read_varint(&reader);
    if (reader.bad || version != VERSION) {
        return reader.bad ? SJ_ECORRUPT : SJ_EVERSION;
    }
    if (wanted > SJ_PROFILE_MAX_NODES || wanted > sj_reader_left(&reader) / LEAST_NODE_BYTES) {
        return wanted > SJ_PROFILE_MAX_NODES ? SJ_ELIMIT : SJ_ECORRUPT;
    }
    sj_path_node *made = calloc((size_t)wanted + 1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_OK;
    for (uint32_t i = 0; i < wanted && status == SJ_OK; i++) {
        status = read_node(&reader, i, &made[i]);
    }
    if (status == SJ_OK && sj_reader_left(&reader) != 0) {
        status = SJ_ECORRUPT;
    }
    if (status != SJ_OK) {
        sj_profile_free(made, (uint32_t)wanted);
        return status;
    }
    *nodes = made;
    *count = (uint32_t)wanted;
    return SJ_OK;
}

void sj_profile_free(sj_path_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; nodes != NULL && i < count; i++) {
        sj_path_histogram_deinit(&nodes[i].histogram);
    }
    free(nodes);
}
