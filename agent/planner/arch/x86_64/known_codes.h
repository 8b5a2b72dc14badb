/* A cache of decoded instructions. Without displacements and immediate operands, a program has only
 * some thousand different instructions. Finding an instruction in the cache takes a tenth of the
 * time of decoding it. */
#ifndef SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H
#define SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H

#include "agent/planner/decoder.h"

#include <Zydis/Zydis.h>

typedef struct sj_known_codes sj_known_codes;

/* Allocates an empty cache for one decoder. Free it with free(). Returns NULL if out of memory; the
 * decoder then works without a cache. */
sj_known_codes *sj_known_codes_new(void);

/* Decodes an instruction like sj_decode. Returns false if it is not in the cache. */
bool sj_known_codes_find(const sj_known_codes *known, const uint8_t *bytes, size_t size,
                         uint32_t at, sj_code *code, uint64_t *immediate);

/* Adds a decoded instruction, if its decoding depends only on the bytes before its displacement and
 * immediate operand. */
void sj_known_codes_add(sj_known_codes *known, const uint8_t *bytes, size_t size,
                        const ZydisDecodedInstruction *decoded, const sj_code *code);

#endif
