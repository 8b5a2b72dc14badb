#include "agent/runtimes/jvm/big_endian.h"

#include "proto/base/array.h"

void sj_be_put(sj_be_output *output, const void *bytes, size_t size)
{
    if (output->bad ||
        sj_array_reserve(&output->data, &output->capacity, output->size, size, 1) != SJ_OK) {
        output->bad = true;
        return;
    }
    if (size != 0) {
        memcpy(output->data + output->size, bytes, size);
    }
    output->size += size;
}

void sj_be_put8(sj_be_output *output, uint8_t value)
{
    sj_be_put(output, &value, sizeof(value));
}

void sj_be_put16(sj_be_output *output, uint16_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 8), (uint8_t)value};
    sj_be_put(output, bytes, sizeof(bytes));
}

void sj_be_put32(sj_be_output *output, uint32_t value)
{
    sj_be_put16(output, (uint16_t)(value >> 16));
    sj_be_put16(output, (uint16_t)value);
}

void sj_be_set16(sj_be_output *output, size_t at, uint16_t value)
{
    if (at + 2 <= output->size) {
        output->data[at] = (uint8_t)(value >> 8);
        output->data[at + 1] = (uint8_t)value;
    }
}

void sj_be_set32(sj_be_output *output, size_t at, uint32_t value)
{
    sj_be_set16(output, at, (uint16_t)(value >> 16));
    sj_be_set16(output, at + 2, (uint16_t)value);
}
