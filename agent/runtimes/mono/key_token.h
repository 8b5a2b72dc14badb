/* Public key tokens: by whom an assembly was signed (ECMA-335, II.6.3). No state; any thread. */
#ifndef SJ_AGENT_RUNTIMES_MONO_KEY_TOKEN_H
#define SJ_AGENT_RUNTIMES_MONO_KEY_TOKEN_H

#include "agent/runtimes/mono/assembly.h"

/* sj_assembly_key_token returns the token of an assembly's public key as it is written, its first
 * digits in the highest bits; 0: it has no key. */
uint64_t sj_assembly_key_token(const sj_assembly *assembly);

/* sj_key_token_of returns the token of a public key. */
uint64_t sj_key_token_of(sj_slice key);

/* sj_assembly_is_framework returns whether an assembly was signed as the framework's are. */
bool sj_assembly_is_framework(const sj_assembly *assembly);

#endif
