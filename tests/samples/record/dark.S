/* Code without symbols and unwind tables, like old assembly. */
.text
.rept 4096
    nop
    nop
    ret
.endr
.section .note.GNU-stack, "", %progbits
