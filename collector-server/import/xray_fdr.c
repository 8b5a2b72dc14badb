/* The file of XRay's flight data recorder: buffers, each behind a record of its size. A function's
 * record has 8 bytes: a kind and a number, and the cycles since the record before. The other
 * records have 16 bytes. */
#include "collector-server/import/xray.h"

enum {
    METADATA_BYTES = 16,
    FUNCTION_BYTES = 8,
    /* kinds of metadata records */
    NEW_BUFFER = 0,
    END_OF_BUFFER = 1,
    NEW_CPU = 2,
    TSC_WRAP = 3,
    WALL_CLOCK = 4,
    CUSTOM_EVENT = 5,
    CALL_ARGUMENT = 6,
    BUFFER_EXTENTS = 7,
    TYPED_EVENT = 8,
    PID = 9
};

/* The state of the reader in a buffer. */
typedef struct fdr_buffer {
    uint64_t left; /* bytes until its end; UINT64_MAX: it has no size */
    uint64_t cycles;
    int64_t pid, tid;
    bool has_thread, has_cycles;
    uint16_t version;
} fdr_buffer;

static sj_status refuse(const sj_xray *xray, const char *what)
{
    return sj_source_fail(xray->source, SJ_ECORRUPT, xray->at, "%s", what);
}

static sj_status skip(sj_xray *xray, fdr_buffer *buffer, uint64_t count)
{
    uint8_t bytes[256];
    if (count > buffer->left) {
        return refuse(xray, "an event is larger than its buffer");
    }
    buffer->left -= count;
    while (count != 0) {
        const size_t part = count < sizeof(bytes) ? (size_t)count : sizeof(bytes);
        SJ_TRY(sj_source_bytes(xray->source, bytes, part, "an event"));
        count -= part;
    }
    return SJ_OK;
}

/* Reads an event of the program: its cycles count, its data is skipped. */
static sj_status read_event(sj_xray *xray, fdr_buffer *buffer, sj_reader *reader)
{
    const int32_t size = (int32_t)sj_read_u32(reader);
    if (buffer->version >= 5) {
        buffer->cycles += (uint64_t)(int32_t)sj_read_u32(reader);
    } else {
        buffer->cycles = sj_read_u64(reader);
    }
    return size >= 0 ? skip(xray, buffer, (uint64_t)size)
                     : refuse(xray, "an event has a negative size");
}

static sj_status read_metadata(sj_xray *xray, fdr_buffer *buffer, const uint8_t *bytes)
{
    sj_reader reader = sj_reader_of(bytes + 1, METADATA_BYTES - 1);
    switch (bytes[0] >> 1) {
    case NEW_BUFFER:
        buffer->tid = (int32_t)sj_read_u32(&reader);
        buffer->pid = 0;
        buffer->has_thread = true;
        buffer->has_cycles = false;
        return SJ_OK;
    case PID:
        buffer->pid = (int32_t)sj_read_u32(&reader);
        return SJ_OK;
    case NEW_CPU:
        (void)sj_read_u16(&reader);
        buffer->cycles = sj_read_u64(&reader);
        buffer->has_cycles = true;
        return SJ_OK;
    case TSC_WRAP:
        buffer->cycles = sj_read_u64(&reader);
        buffer->has_cycles = true;
        return SJ_OK;
    case CUSTOM_EVENT:
    case TYPED_EVENT:
        return read_event(xray, buffer, &reader);
    case BUFFER_EXTENTS:
        xray->is_buffer_start = true;
        *buffer = (fdr_buffer){.version = buffer->version, .left = sj_read_u64(&reader)};
        return SJ_OK;
    case WALL_CLOCK:
    case CALL_ARGUMENT:
        return SJ_OK;
    case END_OF_BUFFER: /* the rest of the buffer is not set */
        buffer->has_thread = false;
        return buffer->left != UINT64_MAX ? skip(xray, buffer, buffer->left) : SJ_OK;
    default:
        return refuse(xray, "a record is of an unknown kind");
    }
}

static sj_status read_function(sj_xray *xray, fdr_buffer *buffer, const uint8_t *bytes)
{
    sj_reader reader = sj_reader_of(bytes, FUNCTION_BYTES);
    const uint32_t word = sj_read_u32(&reader);
    const uint32_t delta = sj_read_u32(&reader);
    const uint32_t kind = word >> 1 & 7;
    uint32_t thread;
    if (kind > SJ_XRAY_ENTER_ARGUMENT || !buffer->has_thread || !buffer->has_cycles) {
        return refuse(xray, "a function's record has no thread, no time or an unknown kind");
    }
    buffer->cycles += delta;
    SJ_TRY(sj_xray_thread(xray, buffer->pid, buffer->tid, &thread));
    return sj_xray_add(xray, thread, (sj_xray_kind)kind, (sj_slice){0}, word >> 4, buffer->cycles);
}

static sj_status read_record(sj_xray *xray, fdr_buffer *buffer)
{
    uint8_t bytes[METADATA_BYTES];
    SJ_TRY(sj_source_bytes(xray->source, bytes, FUNCTION_BYTES, "a record"));
    const bool is_metadata = (bytes[0] & 1) != 0;
    const size_t size = is_metadata ? METADATA_BYTES : FUNCTION_BYTES;
    if (is_metadata) {
        SJ_TRY(sj_source_bytes(xray->source, bytes + FUNCTION_BYTES,
                               METADATA_BYTES - FUNCTION_BYTES, "a record"));
    }
    const bool is_extents = is_metadata && bytes[0] >> 1 == BUFFER_EXTENTS;
    if (is_extents != (buffer->left == 0) || (!is_extents && size > buffer->left)) {
        return refuse(xray, "the records do not fit into their buffer");
    }
    buffer->left -= is_extents ? 0 : size;
    return is_metadata ? read_metadata(xray, buffer, bytes) : read_function(xray, buffer, bytes);
}

sj_status sj_xray_read_fdr(sj_xray *xray, uint16_t version)
{
    fdr_buffer buffer = {.version = version};
    while (sj_source_peek(xray->source) != SJ_SOURCE_END) {
        xray->at = sj_source_offset(xray->source);
        SJ_TRY(read_record(xray, &buffer));
    }
    xray->at = sj_source_offset(xray->source);
    return buffer.left == 0 ? SJ_OK : refuse(xray, "the file ends in a buffer");
}
