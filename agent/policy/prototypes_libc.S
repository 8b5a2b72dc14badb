/* The prototypes of the C library, as a text in the program. */
    .section .rodata
    .globl sj_prototypes_libc
    .type sj_prototypes_libc, %object
sj_prototypes_libc:
    .incbin SJ_PROTOTYPES_LIBC
    .byte 0
    .size sj_prototypes_libc, . - sj_prototypes_libc

    .section .note.GNU-stack, "", %progbits
