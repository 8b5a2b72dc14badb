/* Feeds the reader with what a collector sends over SP. The first byte selects tcp or ipc, and the
 * size of the pieces in which the rest arrives. */
#include "agent/uplink/sp_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sj_sp_reader reader;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const size_t piece = (size_t)(data[0] >> 1) + 1;
    reader.is_ipc = (data[0] & 1) != 0;
    reader.is_greeted = false;
    reader.used = 0;
    reader.count = 0;
    for (size_t at = 1; at < size;) {
        sj_sp_message message;
        sj_status status;
        size_t space_bytes;
        uint8_t *space = sj_sp_reader_space(&reader, &space_bytes);
        size_t part = size - at < piece ? size - at : piece;
        part = part < space_bytes ? part : space_bytes;
        if (part == 0) {
            abort(); /* the reader asked for more bytes but has no capacity for them */
        }
        memcpy(space, data + at, part);
        sj_sp_reader_fed(&reader, part);
        at += part;
        while ((status = sj_sp_reader_next(&reader, &message)) == SJ_OK) {
            if ((message.request & SJ_SP_REQUEST_BIT) == 0 ||
                message.body.size > SJ_SP_BODY_MAX_BYTES || message.body.data < reader.bytes ||
                message.body.data + message.body.size > reader.bytes + reader.count) {
                abort();
            }
        }
        if (status != SJ_EAGAIN) {
            return 0;
        }
    }
    return 0;
}
