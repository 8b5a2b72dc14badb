/* Code without symbols and unwind tables, as assembly of old has it. */
.text
.rept 4096
    nop
    nop
    ret
.endr
.section .note.GNU-stack, "", %progbits
