/* Public key tokens, which identify the signer of an assembly (ECMA-335, II.6.3). Thread-safe. */
#ifndef SJ_AGENT_RUNTIMES_MONO_KEY_TOKEN_H
#define SJ_AGENT_RUNTIMES_MONO_KEY_TOKEN_H

#include "agent/runtimes/mono/assembly.h"

/* Returns the token of an assembly's public key; its first byte is in the highest bits. Returns 0
 * if the assembly has no key. */
uint64_t sj_assembly_key_token(const sj_assembly *assembly);

/* Returns the token of a public key. */
uint64_t sj_key_token_of(sj_slice key);

/* True if an assembly has the public key of a framework library (.NET or Mono). */
bool sj_assembly_is_framework(const sj_assembly *assembly);

#endif
