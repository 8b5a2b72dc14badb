/* The first bytes select the reads; all bytes are the data. A varint that was read must be written
 * back to the same value. */
#include "proto/base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_varint(sj_reader *reader)
{
    uint8_t bytes[10];
    const uint64_t value = sj_read_varint(reader);
    if (reader->bad && value != 0) {
        abort();
    }
    sj_writer writer = sj_writer_of(bytes, sizeof(bytes));
    sj_write_varint(&writer, value);
    sj_reader again = sj_reader_of(bytes, sj_writer_used(&writer));
    if (writer.bad || sj_read_varint(&again) != value || again.bad) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_reader reader = sj_reader_of(data, size);
    for (size_t i = 0; i < size && !reader.bad; i++) {
        switch (data[i] % 6) {
        case 0:
            sj_read_u8(&reader);
            break;
        case 1:
            sj_read_u16(&reader);
            break;
        case 2:
            sj_read_u32(&reader);
            break;
        case 3:
            sj_read_u64(&reader);
            break;
        case 4:
            read_varint(&reader);
            break;
        default:
            sj_read_bytes(&reader, data[i]);
            break;
        }
        if (reader.at > reader.end || reader.at < data) {
            abort();
        }
    }
    return 0;
}
