#include "agent/planner/decoder.h"

#include "agent/planner/machine.h"

typedef struct flag_sets {
    uint8_t written;
    uint8_t read;
} flag_sets;

enum {
    ALL = SJ_FLAGS_ALL,
    BUT_CARRY = SJ_FLAGS_ALL & ~SJ_FLAG_CARRY,
    BUT_OVERFLOW = SJ_FLAGS_ALL & ~SJ_FLAG_OVERFLOW
};

static const flag_sets sets[] = {
    [SJ_EFFECT_WRITES_ALL] = {ALL, 0},
    [SJ_EFFECT_WRITES_CARRY] = {SJ_FLAG_CARRY, 0},
    [SJ_EFFECT_WRITES_ZERO] = {SJ_FLAG_ZERO, 0},
    [SJ_EFFECT_WRITES_CARRY_ZERO] = {SJ_FLAG_CARRY | SJ_FLAG_ZERO, 0},
    [SJ_EFFECT_WRITES_CARRY_OVERFLOW] = {SJ_FLAG_CARRY | SJ_FLAG_OVERFLOW, 0},
    [SJ_EFFECT_KEEPS_CARRY] = {BUT_CARRY, 0},
    [SJ_EFFECT_KEEPS_OVERFLOW] = {BUT_OVERFLOW, 0},
    [SJ_EFFECT_CARRIES] = {ALL, SJ_FLAG_CARRY},
    [SJ_EFFECT_READS_CARRY] = {0, SJ_FLAG_CARRY},
    [SJ_EFFECT_READS_ZERO] = {0, SJ_FLAG_ZERO},
    [SJ_EFFECT_READS_OVERFLOW] = {0, SJ_FLAG_OVERFLOW},
    [SJ_EFFECT_READS_CARRY_ZERO] = {0, SJ_FLAG_CARRY | SJ_FLAG_ZERO},
    [SJ_EFFECT_READS_SIGNS] = {0, SJ_FLAG_OVERFLOW | SJ_FLAG_OTHERS},
    [SJ_EFFECT_READS_ALL_BUT_CARRY] = {0, BUT_CARRY},
    [SJ_EFFECT_UNKNOWN] = {0, ALL}};

uint8_t sj_flags_written(uint8_t effect)
{
    return sets[effect].written;
}

uint8_t sj_flags_read(uint8_t effect)
{
    return sets[effect].read;
}

sj_status sj_decoder_open(sj_decoder *decoder, const sj_machine *machine, uint64_t text_low)
{
    *decoder = (sj_decoder){.machine = machine, .text_low = text_low};
    return machine->open_decoder(decoder);
}

void sj_decoder_close(sj_decoder *decoder)
{
    if (decoder->machine != NULL && decoder->machine->close_decoder != NULL) {
        decoder->machine->close_decoder(decoder);
    }
    decoder->machine = NULL;
}

void sj_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
               sj_code *code, uint64_t *immediate)
{
    decoder->machine->decode(decoder, bytes, size, at, code, immediate);
}
