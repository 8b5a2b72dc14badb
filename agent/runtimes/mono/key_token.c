/* Design notes
 *
 * A token is the last 8 bytes of the SHA-1 hash of the public key in reverse order (FIPS 180-4,
 * section 6.1). It only identifies a publisher; nothing depends on its security. So the hash is
 * computed here, without a library that direct mode would load into the program. */
#include "agent/runtimes/mono/key_token.h"

#include <string.h>

enum { BLOCK_BYTES = 64, LENGTH_BYTES = 8, STATE_WORDS = 5, ROUNDS = 80, ASSEMBLY_KEY = 6 };

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

/* Returns f(b, c, d) + K of a round of SHA-1. */
static uint32_t round_term(unsigned round, const uint32_t s[STATE_WORDS])
{
    if (round < 20) {
        return ((s[1] & s[2]) | (~s[1] & s[3])) + UINT32_C(0x5a827999);
    }
    if (round < 40) {
        return (s[1] ^ s[2] ^ s[3]) + UINT32_C(0x6ed9eba1);
    }
    if (round < 60) {
        return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + UINT32_C(0x8f1bbcdc);
    }
    return (s[1] ^ s[2] ^ s[3]) + UINT32_C(0xca62c1d6);
}

static void add_block(uint32_t state[STATE_WORDS], const uint8_t block[BLOCK_BYTES])
{
    uint32_t words[ROUNDS];
    uint32_t s[STATE_WORDS];
    for (unsigned i = 0; i < 16; i++) {
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (unsigned i = 16; i < ROUNDS; i++) {
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    memcpy(s, state, sizeof(s));
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint32_t first = rotate(s[0], 5) + round_term(i, s) + s[4] + words[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = first;
    }
    for (unsigned i = 0; i < STATE_WORDS; i++) {
        state[i] += s[i];
    }
}

/* Adds the remaining bytes, a 1 bit, and the number of bits, in one or two blocks. */
static void add_end(uint32_t state[STATE_WORDS], sj_slice remaining, uint64_t bits)
{
    uint8_t end[2 * BLOCK_BYTES] = {0};
    const size_t bytes =
        remaining.size + 1 + LENGTH_BYTES > BLOCK_BYTES ? sizeof(end) : BLOCK_BYTES;
    if (remaining.size != 0) {
        memcpy(end, remaining.data, remaining.size);
    }
    end[remaining.size] = 0x80;
    for (unsigned i = 0; i < LENGTH_BYTES; i++) {
        end[bytes - 1 - i] = (uint8_t)(bits >> (8 * i));
    }
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        add_block(state, end + at);
    }
}

uint64_t sj_key_token_of(sj_slice key)
{
    uint32_t state[STATE_WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t at = 0;
    for (; key.size - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
        add_block(state, key.data + at);
    }
    const sj_slice remaining = {.data = key.data + at, .size = key.size - at};
    add_end(state, remaining, (uint64_t)key.size * 8);
    return (uint64_t)__builtin_bswap32(state[4]) << 32 | __builtin_bswap32(state[3]);
}

uint64_t sj_assembly_key_token(const sj_assembly *assembly)
{
    const sj_slice key =
        sj_assembly_blob(assembly, sj_assembly_cell(assembly, SJ_TABLE_ASSEMBLY, 1, ASSEMBLY_KEY));
    return key.size != 0 ? sj_key_token_of(key) : 0;
}

bool sj_assembly_is_framework(const sj_assembly *assembly)
{
    static const uint64_t tokens[] = {
        UINT64_C(0xb77a5c561934e089), /* ECMA: mscorlib, System, System.Core */
        UINT64_C(0xb03f5f7f11d50a3a), /* Microsoft. */
        UINT64_C(0x31bf3856ad364e35), /* Shared libraries of Microsoft. */
        UINT64_C(0xcc7b13ffcd2ddd51), /* .NET Standard and Core. */
        UINT64_C(0x7cec85d7bea7798e), /* Silverlight and portable libraries. */
        UINT64_C(0xadb9793829ddae60), /* ASP.NET. */
        UINT64_C(0x0738eb9f132ed756), /* Mono. */
    };
    const uint64_t token = sj_assembly_key_token(assembly);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        if (token == tokens[i]) {
            return true;
        }
    }
    return false;
}
