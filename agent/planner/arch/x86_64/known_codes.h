/* Memory of decoded instructions. Nearly all instructions of a program are one of some thousand,
 * apart from displacements and immediates. Finding one of those takes a tenth of the time of
 * decoding it. */
#ifndef SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H
#define SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H

#include "agent/planner/decoder.h"

#include <Zydis/Zydis.h>

typedef struct sj_known_codes sj_known_codes;

/* Allocates the empty memory of one decoder. Returns NULL if there is no memory; the decoder then
 * works without it. Free it with free(). */
sj_known_codes *sj_known_codes_new(void);

/* Decodes an instruction like sj_decode; returns false if it is not in the memory. */
bool sj_known_codes_find(const sj_known_codes *known, const uint8_t *bytes, size_t size,
                         uint32_t at, sj_code *code, uint64_t *immediate);

/* Stores a decoded instruction, if its decoding depends only on the bytes before its displacement
 * and immediate. */
void sj_known_codes_add(sj_known_codes *known, const uint8_t *bytes, size_t size,
                        const ZydisDecodedInstruction *decoded, const sj_code *code);

#endif
