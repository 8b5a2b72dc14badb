/* Test support: makes a plan for one function of the bytes in sample_code.S. */
#ifndef SJ_TESTS_AGENT_INPROC_CORE_PLAN_BUILDER_H
#define SJ_TESTS_AGENT_INPROC_CORE_PLAN_BUILDER_H

#include "agent/abi/plan.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint8_t sample_bytes[10] = {0x48, 0x8d, 0x44, 0x37, 0x00,
                                         0x48, 0x6b, 0xc0, 0x03, 0xc3};

/* A plan with one function, a head stub and a tail stub. */
typedef struct sample_plan {
    sj_plan_header header;
    sj_plan_function function;
    sj_plan_stub stubs[2];
    _Alignas(8) uint8_t operations[64];
    sj_plan_patch patches[2];
    _Alignas(8) char strings[16];
} sample_plan;

static inline uint32_t plan_crc(const uint8_t *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (UINT32_C(0x82f63b78) & (0 - (crc & 1)));
        }
    }
    return ~crc;
}

static inline void seal_plan(sample_plan *plan)
{
    plan->header.crc32c = 0;
    plan->header.crc32c = plan_crc((const uint8_t *)plan, sizeof(*plan));
}

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)(value | 0x80);
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Writes the operations of the head stub: ENTER, the five displaced bytes and the jump back.
 * Returns their size in bytes. */
static inline uint32_t put_head(uint8_t *operations, uint64_t offset)
{
    uint8_t *at = operations;
    *at++ = SJ_OPERATION_ENTER;
    *at++ = SJ_OPERATION_COPY;
    at = put_varint(at, 5);
    memcpy(at, sample_bytes, 5);
    at += 5;
    *at++ = SJ_OPERATION_JUMP;
    at = put_varint(at, (offset + 5) << 1);
    return (uint32_t)(at - operations);
}

/* Writes the operations of the tail stub: the multiplication, LEAVE and ret. Returns their size in
 * bytes. */
static inline uint32_t put_tail(uint8_t *operations)
{
    uint8_t *at = operations;
    *at++ = SJ_OPERATION_COPY;
    *at++ = 4;
    memcpy(at, sample_bytes + 5, 4);
    at += 4;
    *at++ = SJ_OPERATION_LEAVE;
    *at++ = SJ_OPERATION_COPY;
    *at++ = 1;
    *at++ = sample_bytes[9];
    return (uint32_t)(at - operations);
}

static inline void build_plan(sample_plan *plan, uint64_t offset)
{
    memset(plan, 0, sizeof(*plan));
    plan->stubs[0].code_bytes = 1024;
    plan->stubs[1].code_bytes = 1024;
    plan->stubs[0].operations_bytes = put_head(plan->operations, offset);
    plan->stubs[1].operations = plan->stubs[0].operations_bytes;
    plan->stubs[1].operations_bytes = put_tail(plan->operations + plan->stubs[1].operations);
    plan->header = (sj_plan_header){
        .magic = SJ_PLAN_MAGIC,
        .version = SJ_PLAN_VERSION,
        .machine = EM_X86_64,
        .file_bytes = sizeof(*plan),
        .text_low = offset,
        .text_high = offset + sizeof(sample_bytes),
        .function_count = 1,
        .functions_offset = offsetof(sample_plan, function),
        .stub_count = 2,
        .stubs_offset = offsetof(sample_plan, stubs),
        .operations_bytes = sizeof(plan->operations),
        .operations_offset = offsetof(sample_plan, operations),
        .patch_count = 2,
        .patches_offset = offsetof(sample_plan, patches),
        .stub_code_bytes = 2048,
        .strings_bytes = sizeof(plan->strings),
        .strings_offset = offsetof(sample_plan, strings),
    };
    plan->function = (sj_plan_function){.offset = offset,
                                        .size = sizeof(sample_bytes),
                                        .patch_count = 2,
                                        .technique = SJ_TECHNIQUE_INLINE,
                                        .source = SJ_SYMBOL_SYMTAB};
    for (uint32_t i = 0; i < 2; i++) {
        plan->patches[i] = (sj_plan_patch){.offset = offset + (i == 0 ? 5 : 0),
                                           .stub = 1 - i,
                                           .kind = SJ_PATCH_JUMP32,
                                           .bytes = 5,
                                           .window = 5};
        memcpy(plan->patches[i].original, sample_bytes + (i == 0 ? 5 : 0), 5);
    }
    seal_plan(plan);
}

#endif
