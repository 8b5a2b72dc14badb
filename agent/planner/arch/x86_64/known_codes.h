/* Instructions that were decoded before. Nearly all of a program's are one of some thousand, but
 * for their displacements and immediates, and finding one of those takes a tenth of decoding it. */
#ifndef SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H
#define SJ_AGENT_PLANNER_ARCH_X86_64_KNOWN_CODES_H

#include "agent/planner/decoder.h"

#include <Zydis/Zydis.h>

typedef struct sj_known_codes sj_known_codes;

/* sj_known_codes_new makes an empty memory of one decoder; NULL: there is no room, and whoever has
 * it does without. Released by free. */
sj_known_codes *sj_known_codes_new(void);

/* sj_known_codes_find reads an instruction as sj_decode does; false: it is not known. */
bool sj_known_codes_find(const sj_known_codes *known, const uint8_t *bytes, size_t size,
                         uint32_t at, sj_code *code, uint64_t *immediate);

/* sj_known_codes_add keeps what was decoded, where what it is does not depend on more than the
 * bytes in front of its displacement and immediate. */
void sj_known_codes_add(sj_known_codes *known, const uint8_t *bytes, size_t size,
                        const ZydisDecodedInstruction *decoded, const sj_code *code);

#endif
