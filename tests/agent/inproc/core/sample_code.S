/* Functions of known bytes, which the test recorder plans by hand. Both entries are 16-byte
 * aligned and followed by padding.
 *   head: lea 0(%rdi,%rsi), %rax   5 bytes
 *   tail: imul $3, %rax, %rax; ret 4 + 1 bytes */
    .text
    .macro sample_function name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .byte 0x48, 0x8d, 0x44, 0x37, 0x00
    .byte 0x48, 0x6b, 0xc0, 0x03
    .byte 0xc3
    .size \name, . - \name
    .p2align 4
    .endm

#ifdef SAMPLE_PLUGIN
    sample_function plugin_triple
#else
    sample_function sample_triple
#endif
    .section .note.GNU-stack, "", @progbits
